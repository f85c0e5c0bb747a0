#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chess/position.h"

namespace tahl {

enum class Result : std::uint8_t { WhiteWins, BlackWins, Draw, Unknown };
std::string_view to_string(Result r);  // "1-0", "0-1", "1/2-1/2", "*"

enum class Ending : std::uint8_t {
  Checkmate,
  Stalemate,
  InsufficientMaterial,
  SeventyFiveMoves,
  FivefoldRepetition,  // end the game by themselves
  FiftyMoves,
  ThreefoldRepetition,  // may be claimed
};
std::string_view to_string(Ending e);  // "checkmate", ...
struct Outcome {
  Result result;
  Ending ending;
};

// A position and how it came about. A value: copying copies the history.
class Game {
 public:
  Game() : Game(Position::initial()) {}
  explicit Game(const Position& start, bool chess960 = false)
      : positions_{start}, chess960_(chess960) {}

  const Position& start() const { return positions_.front(); }
  const Position& position() const { return positions_.back(); }
  const std::vector<Position>& positions() const { return positions_; }  // one more than moves
  const std::vector<Move>& moves() const { return moves_; }
  int ply() const { return static_cast<int>(moves_.size()); }
  bool is_chess960() const {
    return chess960_;
  }  // castling moves are then written king-takes-rook in UCI
  void set_chess960(bool on) { chess960_ = on; }

  void play(Move m);  // Precondition: legal
  void play_null();   // as a move a1a1. Precondition: not in check
  void undo();        // Precondition: ply() > 0

  // How often the present position has been on the board, this time included, since the last
  // capture or pawn move.
  int repetitions() const;
  // The end of the game here; `claimable` counts threefold and fifty moves (as arbiters of engine
  // games do).
  std::optional<Outcome> outcome(bool claimable = true) const;

 private:
  std::vector<Position> positions_;
  std::vector<Move> moves_;
  bool chess960_ = false;
};

bool has_insufficient_material(const Position& position);  // no sequence of legal moves mates
                                                           // (K+minor v K, bishops of one colour)

}  // namespace tahl
