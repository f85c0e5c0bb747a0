#pragma once

// Which moves are legal, once more: slowly, square by square, from the rules alone. It shares
// nothing with the move generator but what Position says of pieces, castling rights and the en
// passant square.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "chess/position.h"

namespace tahl::fuzz {

class SlowRules {
 public:
  explicit SlowRules(const Position& position) : position_(position), us_(position.side_to_move()) {
    for (Square s = 0; s < 64; ++s) board_[s] = position.piece_on(s);
  }

  std::vector<Move> legal_moves() const {
    std::vector<Move> moves;
    const auto add = [&](Move m) {
      if (is_legal(m)) moves.push_back(m);
    };
    for (Square from = 0; from < 64; ++from) {
      if (!is_of(from, us_)) continue;
      for (Square to = 0; to < 64; ++to) {
        for (const MoveKind kind : {MoveKind::Normal, MoveKind::EnPassant, MoveKind::Castling})
          add(Move(from, to, kind));
        for (const PieceType t :
             {PieceType::Knight, PieceType::Bishop, PieceType::Rook, PieceType::Queen})
          add(Move(from, to, MoveKind::Promotion, t));
      }
    }
    return moves;
  }

 private:
  using Board = std::array<Piece, 64>;

  bool is_empty(Square s) const { return board_[s].type == PieceType::None; }
  bool is_of(Square s, Color c) const { return !is_empty(s) && board_[s].color == c; }

  bool is_legal(Move m) const {
    const Square from = m.from(), to = m.to();
    if (m.is_castling()) return can_castle(from, to);
    const bool pawn = board_[from].type == PieceType::Pawn;
    if (from == to || is_of(to, us_)) return false;
    if (m.is_promotion() != (pawn && relative_rank(us_, to) == 7)) return false;
    Board after = board_;
    if (m.is_en_passant()) {
      if (!pawn || to != position_.en_passant_square() || !reaches(board_, from, to)) return false;
      after[make_square(file_of(to), rank_of(from))] = {};
    } else if (pawn ? !pawn_moves(from, to) : !reaches(board_, from, to)) {
      return false;
    }
    after[to] = m.is_promotion() ? Piece{m.promotion(), us_} : board_[from];
    after[from] = {};
    return !in_check(after);
  }

  bool pawn_moves(Square from, Square to) const {
    if (file_of(from) != file_of(to)) return is_of(to, ~us_) && reaches(board_, from, to);
    const int steps = relative_rank(us_, to) - relative_rank(us_, from);
    const auto middle = static_cast<Square>((from + to) / 2);
    return is_empty(to) &&
           (steps == 1 || (steps == 2 && relative_rank(us_, from) == 1 && is_empty(middle)));
  }

  // The king takes his own rook.
  bool can_castle(Square king, Square rook) const {
    if (board_[king].type != PieceType::King) return false;
    if (rook != position_.castling_rook(us_, CastlingSide::King) &&
        rook != position_.castling_rook(us_, CastlingSide::Queen))
      return false;
    const bool kingside = rook > king;
    const int rank = rank_of(king);
    const Square king_to = make_square(kingside ? 6 : 2, rank);
    const Square rook_to = make_square(kingside ? 5 : 3, rank);
    for (Square s = 0; s < 64; ++s) {
      const bool kings_way = lies_from_to(s, king, king_to);
      if (!kings_way && !lies_from_to(s, rook, rook_to)) continue;
      if (s != king && s != rook && !is_empty(s)) return false;
      if (!kings_way) continue;
      Board on_the_way = board_;  // of the king; the rook has not moved yet
      on_the_way[king] = {};
      if (is_attacked(on_the_way, s)) return false;
    }
    Board after = board_;
    after[king] = after[rook] = {};
    after[king_to] = {PieceType::King, us_};
    after[rook_to] = {PieceType::Rook, us_};
    return !in_check(after);
  }
  static bool lies_from_to(Square s, Square a, Square b) {  // on one rank
    return s >= std::min(a, b) && s <= std::max(a, b);
  }

  // Whether the piece on `from` attacks `to`.
  static bool reaches(const Board& board, Square from, Square to) {
    const Piece piece = board[from];
    const int files = file_of(to) - file_of(from), ranks = rank_of(to) - rank_of(from);
    const int longer = std::max(std::abs(files), std::abs(ranks));
    const bool straight = files == 0 || ranks == 0, diagonal = std::abs(files) == std::abs(ranks);
    switch (piece.type) {
      case PieceType::Pawn:
        return std::abs(files) == 1 && ranks == (piece.color == Color::White ? 1 : -1);
      case PieceType::Knight:
        return std::abs(files * ranks) == 2;
      case PieceType::King:
        return longer == 1;
      case PieceType::Bishop:
        if (!diagonal) return false;
        break;
      case PieceType::Rook:
        if (!straight) return false;
        break;
      case PieceType::Queen:
        if (!straight && !diagonal) return false;
        break;
      case PieceType::None:
        return false;
    }
    for (int i = 1; i < longer; ++i) {
      const Square s =
          make_square(file_of(from) + files / longer * i, rank_of(from) + ranks / longer * i);
      if (board[s].type != PieceType::None) return false;
    }
    return longer > 0;
  }

  bool is_attacked(const Board& board, Square target) const {  // by the enemy
    for (Square s = 0; s < 64; ++s)
      if (board[s].color == ~us_ && s != target && reaches(board, s, target)) return true;
    return false;
  }

  bool in_check(const Board& board) const {
    for (Square s = 0; s < 64; ++s)
      if (board[s] == Piece{PieceType::King, us_}) return is_attacked(board, s);
    return false;
  }

  const Position& position_;
  const Color us_;
  Board board_;
};

}  // namespace tahl::fuzz
