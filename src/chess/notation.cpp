#include "chess/notation.h"

#include <algorithm>
#include <array>

#include "chess/movegen.h"
#include "chess/san.h"

namespace tahl {
namespace {

constexpr std::string_view kLetters = "PNBRQK";

// Where the king ends up: castling is stored as the king taking his own rook.
Square king_target(Move castling) {
  return make_square(castling.to() > castling.from() ? 6 : 2, rank_of(castling.from()));
}

// A move from one square to another as UCI writes it, castling in either form.
SanFault find_move(const Position& p, Square from, Square to, PieceType promotion, Move& move) {
  const Color us = p.side_to_move();
  if ((p.pieces(us) & bit(from)) == 0) return SanFault::Illegal;
  const PieceType piece = p.type_on(from);
  MoveKind kind = MoveKind::Normal;
  if (piece == PieceType::Pawn && relative_rank(us, to) == 7) {
    if (promotion == PieceType::None || promotion == PieceType::Pawn ||
        promotion == PieceType::King)
      return SanFault::Illegal;
    kind = MoveKind::Promotion;
  } else if (promotion != PieceType::None) {
    return SanFault::Illegal;
  } else if (piece == PieceType::Pawn && file_of(from) != file_of(to) &&
             to == p.en_passant_square()) {
    kind = MoveKind::EnPassant;
  } else if (piece == PieceType::King) {
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen}) {
      const Square rook = p.castling_rook(us, side);
      if (rook == kNoSquare) continue;
      const bool onto_target = to == king_target(Move(from, rook, MoveKind::Castling)) &&
                               (king_attacks(from) & bit(to)) == 0;
      if (to == rook || onto_target) return find_castling(p, side, move);
    }
  }
  const Move candidate =
      kind == MoveKind::Promotion ? Move(from, to, kind, promotion) : Move(from, to, kind);
  if (!is_legal(p, candidate)) return SanFault::Illegal;
  move = candidate;
  return SanFault::None;
}

Expected<Move> answer(SanFault fault, Move move, const char* notation, std::string_view text) {
  switch (fault) {
    case SanFault::None:
      return move;
    case SanFault::Illegal:
      return fail("{}: {} is illegal here", notation, quoted(text));
    case SanFault::Ambiguous:
      return fail("{}: {} is ambiguous here", notation, quoted(text));
    case SanFault::NotAMove:
      break;
  }
  return fail("{}: {} is no move", notation, quoted(text));
}

bool is_decoration(std::string_view text) {
  while (!text.empty()) {
    if (text.starts_with("e.p.")) {
      text.remove_prefix(4);
    } else if (text.starts_with("ep")) {
      text.remove_prefix(2);
    } else if (std::string_view("+#!? ").find(text.front()) != std::string_view::npos) {
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

SanFault find_long_move(const Position& position, const SanShape& s, Move& move) {
  return find_move(position, make_square(s.from_file, s.from_rank), s.to, s.promotion, move);
}

std::string to_uci(const Position&, Move m, bool chess960) {
  if (!m) return "0000";
  const Square to = m.is_castling() && !chess960 ? king_target(m) : m.to();
  std::string text = square_name(m.from()) + square_name(to);
  if (m.is_promotion())
    text += static_cast<char>(kLetters[static_cast<std::size_t>(index(m.promotion()))] + 32);
  return text;
}

Expected<Move> parse_uci(const Position& position, std::string_view text, bool) {
  const bool shaped = (text.size() == 4 || text.size() == 5) && is_file(text[0]) &&
                      is_rank(text[1]) && is_file(text[2]) && is_rank(text[3]);
  PieceType promotion = PieceType::None;
  if (shaped && text.size() == 5) promotion = piece_of_letter(to_upper(text[4]));
  if (!shaped || (text.size() == 5 && promotion == PieceType::None))
    return answer(SanFault::NotAMove, {}, "uci", text);
  Move move;
  const SanFault fault = find_move(position, make_square(text[0] - 'a', text[1] - '1'),
                                   make_square(text[2] - 'a', text[3] - '1'), promotion, move);
  return answer(fault, move, "uci", text);
}

std::string to_san(const Position& position, Move m) {
  if (!m) return "--";
  std::string text;
  const PieceType piece = position.type_on(m.from());
  if (m.is_castling()) {
    text = m.to() > m.from() ? "O-O" : "O-O-O";
  } else {
    const std::string from = square_name(m.from());
    if (piece == PieceType::Pawn) {
      if (position.is_capture(m)) text += from[0];
    } else {
      text += kLetters[static_cast<std::size_t>(index(piece))];
      bool others = false, same_file = false, same_rank = false;
      for (const Move other : legal_moves(position)) {
        if (other.to() != m.to() || other.from() == m.from() || other.is_castling() ||
            position.type_on(other.from()) != piece)
          continue;
        others = true;
        same_file |= file_of(other.from()) == file_of(m.from());
        same_rank |= rank_of(other.from()) == rank_of(m.from());
      }
      if (others && (!same_file || same_rank)) text += from[0];
      if (others && same_file) text += from[1];
    }
    if (position.is_capture(m)) text += 'x';
    text += square_name(m.to());
    if (m.is_promotion()) {
      text += '=';
      text += kLetters[static_cast<std::size_t>(index(m.promotion()))];
    }
  }
  Position next = position;
  next.make(m);
  if (next.is_check()) text += has_legal_move(next) ? '+' : '#';
  return text;
}

Expected<Move> parse_san(const Position& position, std::string_view text) {
  std::array<char, 32> copy{};  // ends with a zero byte; no move is longer
  SanShape shape;
  if (text.empty() || text.size() >= copy.size() - 2)
    return answer(SanFault::NotAMove, {}, "san", text);
  std::copy(text.begin(), text.end(), copy.begin());
  const char* end = scan_san(copy.data(), shape);
  if (!end || shape.kind == SanShape::Kind::Null ||
      !is_decoration(text.substr(static_cast<std::size_t>(end - copy.data()))))
    return answer(SanFault::NotAMove, {}, "san", text);
  Move move;
  const SanFault fault = find_san_move(position, shape, move);
  return answer(fault, move, "san", text);
}

}  // namespace tahl
