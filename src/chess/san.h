#pragma once

// The parts of SAN that parse_san and the PGN reader share. Reading a game is nearly all SAN, so
// this decodes a move from its target square backwards, without a move list and without allocation.

#include <cstdint>

#include "chess/attacks.h"
#include "chess/position.h"

namespace tahl {

// A move as it is written, before any board is looked at.
struct SanShape {
  enum class Kind : std::uint8_t { Piece, CastleKing, CastleQueen, Null };
  Kind kind = Kind::Piece;
  PieceType piece = PieceType::Pawn;
  bool has_letter = false;  // of a piece: "e2e4" may be any piece's move, "Pe2e4" a pawn's
  PieceType promotion = PieceType::None;
  int from_file = -1, from_rank = -1;
  Square to = kNoSquare;
};

enum class SanFault : std::uint8_t { None, NotAMove, Illegal, Ambiguous };

constexpr PieceType piece_of_letter(char letter) {
  switch (letter) {
    case 'P':
      return PieceType::Pawn;
    case 'N':
      return PieceType::Knight;
    case 'B':
      return PieceType::Bishop;
    case 'R':
      return PieceType::Rook;
    case 'Q':
      return PieceType::Queen;
    case 'K':
      return PieceType::King;
    default:
      return PieceType::None;
  }
}
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
constexpr bool is_file(char c) { return c >= 'a' && c <= 'h'; }
constexpr bool is_rank(char c) { return c >= '1' && c <= '8'; }

// "O-O", "0-0-0", "o-o": the number of O's (2 or 3), or 0; `p` moves behind them.
inline int scan_castling(const char*& p) {
  const char letter = *p;
  const char* q = p + 1;
  int letters = 1;
  while (letters < 3 && q[0] == '-' && q[1] == letter) {
    q += 2;
    ++letters;
  }
  if (letters == 1) return 0;
  p = q;
  return letters;
}

// Reads the move that starts at `p` in text that ends with a zero byte, up to and without + # ! ?
// and "e.p.". Returns where it stopped, or nullptr if this is no move.
inline const char* scan_san(const char* p, SanShape& move) {
  move = {};
  if (const PieceType piece = piece_of_letter(*p); piece != PieceType::None) {
    move.piece = piece;
    move.has_letter = true;
    ++p;
  } else if (*p == 'O' || *p == '0' || *p == 'o') {
    const int letters = scan_castling(p);
    if (letters == 0) return nullptr;
    move.kind = letters == 2 ? SanShape::Kind::CastleKing : SanShape::Kind::CastleQueen;
    return p;
  } else if ((p[0] == '-' && p[1] == '-') || (p[0] == 'Z' && p[1] == '0')) {
    move.kind = SanShape::Kind::Null;
    return p + 2;
  }
  int file = -1, rank = -1;
  for (;; ++p) {
    const char c = *p;
    if (is_file(c)) {
      if (c == 'b' && (rank == 0 || rank == 7) && move.piece == PieceType::Pawn && !is_rank(p[1]) &&
          p[1] != 'x')
        break;  // "a8b": a bishop, in lower case
      if (c == 'e' && rank >= 0 && (p[1] == 'p' || p[1] == '.')) break;  // "e.p."
      if (file >= 0 || rank >= 0) {
        if (move.from_file >= 0 || move.from_rank >= 0) return nullptr;
        move.from_file = file;
        move.from_rank = rank;
        rank = -1;
      }
      file = c - 'a';
    } else if (is_rank(c)) {
      if (rank >= 0) return nullptr;
      rank = c - '1';
    } else if ((c == 'x' || c == '-' || c == ':') && is_file(p[1])) {
      continue;
    } else {
      break;
    }
  }
  if (file < 0 || rank < 0) return nullptr;
  move.to = make_square(file, rank);
  if (rank == 0 || rank == 7) {
    const char* q = p;
    const bool bracket = *q == '(';
    if (bracket || *q == '=' || *q == '/') ++q;
    const PieceType promotion = piece_of_letter(to_upper(*q));
    if (promotion != PieceType::None && (!bracket || q[1] == ')')) {
      move.promotion = promotion;
      p = q + (bracket ? 2 : 1);
    }
  }
  return p;
}

// True if the king of the side to move is not attacked once `from` has gone to `to` and `captured`
// (a square or kNoSquare) is empty. For any piece but the king.
inline bool leaves_king_safe(const Position& p, Square from, Square to, Square captured) {
  const Color us = p.side_to_move();
  const Square king = p.king(us);
  Bitboard occupied = (p.occupied() & ~bit(from)) | bit(to);
  Bitboard enemies = p.pieces(~us) & ~bit(to);
  if (captured != kNoSquare) {
    occupied &= ~bit(captured);
    enemies &= ~bit(captured);
  }
  const Bitboard queens = p.pieces(PieceType::Queen);
  const Bitboard attackers =
      (pawn_attacks(us, king) & p.pieces(PieceType::Pawn)) |
      (knight_attacks(king) & p.pieces(PieceType::Knight)) |
      (bishop_attacks(king, occupied) & (p.pieces(PieceType::Bishop) | queens)) |
      (rook_attacks(king, occupied) & (p.pieces(PieceType::Rook) | queens));
  return (attackers & enemies) == 0;
}

// Castling with the rook of that side, or the fault.
inline SanFault find_castling(const Position& p, CastlingSide side, Move& move) {
  const Color us = p.side_to_move();
  const Square rook = p.castling_rook(us, side);
  if (rook == kNoSquare) return SanFault::Illegal;
  const Square king = p.king(us);
  const int rank = rank_of(king);
  const Square king_to = make_square(side == CastlingSide::King ? 6 : 2, rank);
  const Square rook_to = make_square(side == CastlingSide::King ? 5 : 3, rank);
  const Bitboard others = p.occupied() & ~bit(king) & ~bit(rook);
  const Bitboard king_path = between(king, king_to) | bit(king_to);
  const Bitboard rook_path = between(rook, rook_to) | bit(rook_to);
  if ((king_path | rook_path) & others) return SanFault::Illegal;
  for (Bitboard path = king_path | bit(king); path;)
    if (p.attackers_to(pop_square(path), p.occupied() & ~bit(king)) & p.pieces(~us))
      return SanFault::Illegal;
  // In Chess960 the rook may uncover its king.
  if (p.attackers_to(king_to, others | bit(king_to) | bit(rook_to)) & p.pieces(~us))
    return SanFault::Illegal;
  move = Move(king, rook, MoveKind::Castling);
  return SanFault::None;
}

// Moves without a piece's letter whose square of departure is given, as in UCI.
SanFault find_long_move(const Position& position, const SanShape& shape, Move& move);

inline SanFault find_pawn_move(const Position& p, const SanShape& s, Move& move) {
  const Color us = p.side_to_move();
  const Square to = s.to;
  const bool promotes = relative_rank(us, to) == 7;
  if (promotes != (s.promotion != PieceType::None) || s.promotion == PieceType::Pawn ||
      s.promotion == PieceType::King)
    return SanFault::Illegal;
  const Bitboard pawns = p.pieces(us, PieceType::Pawn);
  Square from;
  Square captured = kNoSquare;
  MoveKind kind = promotes ? MoveKind::Promotion : MoveKind::Normal;
  if (s.from_file >= 0 && s.from_file != file_of(to)) {
    Bitboard origin = pawn_attacks(~us, to) & pawns & file_mask(s.from_file);
    if (s.from_rank >= 0) origin &= rank_mask(s.from_rank);
    if (!origin) return SanFault::Illegal;
    from = first_square(origin);
    if ((p.pieces(~us) & bit(to)) == 0) {
      if (to != p.en_passant_square()) return SanFault::Illegal;
      captured = static_cast<Square>(to ^ 8);
      kind = MoveKind::EnPassant;
    }
  } else {
    const int back = us == Color::White ? -8 : 8;
    if (relative_rank(us, to) < 2 || (p.occupied() & bit(to))) return SanFault::Illegal;
    from = static_cast<Square>(to + back);
    if (relative_rank(us, to) == 3 && (p.occupied() & bit(from)) == 0)
      from = static_cast<Square>(from + back);
    if ((pawns & bit(from)) == 0) return SanFault::Illegal;
    if (s.from_rank >= 0 && s.from_rank != rank_of(from)) return SanFault::Illegal;
  }
  if (!leaves_king_safe(p, from, to, captured)) return SanFault::Illegal;
  move = kind == MoveKind::Promotion ? Move(from, to, kind, s.promotion) : Move(from, to, kind);
  return SanFault::None;
}

// The legal move that is written so, or what is wrong. Null moves are the caller's.
inline SanFault find_san_move(const Position& p, const SanShape& s, Move& move) {
  if (s.kind != SanShape::Kind::Piece)
    return find_castling(
        p, s.kind == SanShape::Kind::CastleKing ? CastlingSide::King : CastlingSide::Queen, move);
  if (!s.has_letter && s.from_file >= 0 && s.from_rank >= 0) return find_long_move(p, s, move);
  if (s.piece == PieceType::Pawn) return find_pawn_move(p, s, move);
  if (s.promotion != PieceType::None) return SanFault::NotAMove;

  const Color us = p.side_to_move();
  const Square to = s.to;
  if (p.pieces(us) & bit(to)) return SanFault::Illegal;
  Bitboard origins = p.pieces(us, s.piece);
  switch (s.piece) {
    case PieceType::Knight:
      origins &= knight_attacks(to);
      break;
    case PieceType::Bishop:
      origins &= bishop_attacks(to, p.occupied());
      break;
    case PieceType::Rook:
      origins &= rook_attacks(to, p.occupied());
      break;
    case PieceType::Queen:
      origins &= queen_attacks(to, p.occupied());
      break;
    default:
      origins &= king_attacks(to);
      break;
  }
  if (s.from_file >= 0) origins &= file_mask(s.from_file);
  if (s.from_rank >= 0) origins &= rank_mask(s.from_rank);
  if (s.piece == PieceType::King) {
    if (!origins && s.from_file >= 0 && s.from_rank >= 0 &&
        p.king(us) == make_square(s.from_file, s.from_rank))
      return find_long_move(p, s, move);  // "Ke1g1"
    if (!origins) return SanFault::Illegal;
    const Square from = first_square(origins);
    if (p.attackers_to(to, p.occupied() & ~bit(from)) & p.pieces(~us)) return SanFault::Illegal;
    move = Move(from, to);
    return SanFault::None;
  }
  int found = 0;
  while (origins) {
    const Square from = pop_square(origins);
    if (!leaves_king_safe(p, from, to, kNoSquare)) continue;
    move = Move(from, to);
    ++found;
  }
  return found == 1 ? SanFault::None : found == 0 ? SanFault::Illegal : SanFault::Ambiguous;
}

}  // namespace tahl
