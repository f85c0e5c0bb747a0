#include "chess/game.h"

#include <algorithm>

#include "chess/movegen.h"

namespace tahl {

std::string_view to_string(Result r) {
  switch (r) {
    case Result::WhiteWins:
      return "1-0";
    case Result::BlackWins:
      return "0-1";
    case Result::Draw:
      return "1/2-1/2";
    case Result::Unknown:
      break;
  }
  return "*";
}

std::string_view to_string(Ending e) {
  switch (e) {
    case Ending::Checkmate:
      return "checkmate";
    case Ending::Stalemate:
      return "stalemate";
    case Ending::InsufficientMaterial:
      return "insufficient material";
    case Ending::SeventyFiveMoves:
      return "seventy-five moves";
    case Ending::FivefoldRepetition:
      return "fivefold repetition";
    case Ending::FiftyMoves:
      return "fifty moves";
    case Ending::ThreefoldRepetition:
      break;
  }
  return "threefold repetition";
}

void Game::play(Move m) {
  Position next = position();
  next.make(m);
  positions_.push_back(next);
  moves_.push_back(m);
}

void Game::play_null() {
  Position next = position();
  next.make_null();
  positions_.push_back(next);
  moves_.push_back(Move{});
}

void Game::undo() {
  assert(!moves_.empty());
  positions_.pop_back();
  moves_.pop_back();
}

int Game::repetitions() const {
  const Position& now = position();
  const int last = static_cast<int>(positions_.size()) - 1;
  const int first = std::max(0, last - now.halfmove_clock());
  int count = 1;
  for (int i = last - 2; i >= first; i -= 2)  // the same side to move
    if (positions_[static_cast<std::size_t>(i)].same_as(now)) ++count;
  return count;
}

std::optional<Outcome> Game::outcome(bool claimable) const {
  const Position& now = position();
  if (!has_legal_move(now)) {
    if (!now.is_check()) return Outcome{Result::Draw, Ending::Stalemate};
    return Outcome{now.side_to_move() == Color::White ? Result::BlackWins : Result::WhiteWins,
                   Ending::Checkmate};
  }
  const auto draw = [](Ending e) { return Outcome{Result::Draw, e}; };
  if (has_insufficient_material(now)) return draw(Ending::InsufficientMaterial);
  if (now.halfmove_clock() >= 150) return draw(Ending::SeventyFiveMoves);
  const int repeated = repetitions();
  if (repeated >= 5) return draw(Ending::FivefoldRepetition);
  if (claimable && now.halfmove_clock() >= 100) return draw(Ending::FiftyMoves);
  if (claimable && repeated >= 3) return draw(Ending::ThreefoldRepetition);
  return std::nullopt;
}

bool has_insufficient_material(const Position& p) {
  constexpr Bitboard kDarkSquares = 0xaa55aa55aa55aa55ull;
  if (p.pieces(PieceType::Pawn) | p.pieces(PieceType::Rook) | p.pieces(PieceType::Queen))
    return false;
  const Bitboard knights = p.pieces(PieceType::Knight), bishops = p.pieces(PieceType::Bishop);
  if (popcount(knights | bishops) <= 1) return true;
  return knights == 0 && ((bishops & kDarkSquares) == 0 || (bishops & ~kDarkSquares) == 0);
}

}  // namespace tahl
