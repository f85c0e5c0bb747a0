#pragma once

// What the fuzzers have in common: how a property is asserted, and properties of positions.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "chess/fen.h"
#include "chess/movegen.h"

namespace tahl::fuzz {

// Ends the program if a property doesn't hold; that is how a fuzzer learns of it.
inline void check(bool holds, const char* property, std::string_view about = {}) {
  if (holds) return;
  std::fprintf(stderr, "\nproperty: %s\nbroken by: %s\n", property, quoted(about, 500).c_str());
  std::abort();
}
inline void check(bool holds, const char* property, const Position& position,
                  std::string_view about = {}) {
  if (holds) return;
  std::fprintf(stderr, "\nin: %s\n", to_fen(position, FenStyle::Shredder).c_str());
  check(false, property, about);
}

// A message is one line of printable text.
inline void check_message(std::string_view message) {
  check(!message.empty() && message.size() < 400, "a message is short", message);
  for (const char c : message) check(c >= 32 && c < 127, "a message is printable", message);
}

// Reading undoes writing, and the key is the same by FEN as by moves.
inline void check_fen(const Position& position, FenStyle style, bool chess960) {
  constexpr int kMostMoves = 1'000'000;  // higher counters are written so
  const std::string fen = to_fen(position, style);
  const auto again = parse_fen(fen, chess960);
  check(again.has_value(), "a FEN that was written can be read", position, fen);
  check(again->same_as(position), "FEN keeps the position", position, fen);
  check(again->key() == position.key(), "the key from FEN is the key from moves", position, fen);
  check(again->halfmove_clock() == std::min(position.halfmove_clock(), kMostMoves) &&
            again->fullmove_number() == std::min(position.fullmove_number(), kMostMoves),
        "FEN keeps the counters", position, fen);
}
inline void check_fen(const Position& position) {
  check_fen(position, FenStyle::XFen, needs_chess960(position));
  check_fen(position, FenStyle::Shredder, false);
  check_fen(position, FenStyle::Shredder, true);
}

// The position after `m`, which gives check if it was said to.
inline Position after(const Position& position, Move m) {
  Position next = position;
  next.make(m);
  check(position.gives_check(m) == next.is_check(), "gives_check is what the board says after",
        next);
  return next;
}

// One input of the move fuzzers: a line with a FEN (else the game starts as usual), a line of which
// each byte chooses a move, and lines to be read as moves. Text, so that a corpus can be read.
class MoveInput {
 public:
  MoveInput(const std::uint8_t* data, std::size_t size)
      : text_(reinterpret_cast<const char*>(data), size) {
    if (const auto start = parse_fen(line(), true)) position_ = *start;
    for (const char c : line().substr(0, kMostPlies)) {
      const MoveList moves = legal_moves(position_);
      if (moves.empty()) break;
      position_ = after(position_, moves[static_cast<unsigned char>(c) % moves.size()]);
      check_fen(position_, FenStyle::XFen, needs_chess960(position_));
    }
    check_fen(position_);
  }
  const Position& position() const { return position_; }
  bool at_end() const { return text_.empty(); }
  std::string_view line() {
    const std::string_view line = text_.substr(0, text_.find('\n'));
    text_.remove_prefix(std::min(line.size() + 1, text_.size()));
    return line;
  }

 private:
  static constexpr std::size_t kMostPlies = 40;
  std::string_view text_;
  Position position_ = Position::initial();
};

}  // namespace tahl::fuzz
