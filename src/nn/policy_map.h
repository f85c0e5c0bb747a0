#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "chess/error.h"
#include "chess/position.h"
#include "nn/encoding.h"

namespace tahl::nn {

// How a network's policy output is read. All work in the encoding's frame (see encoding.h), which
// is the mover's for all but lc0's canonical ones.
enum class PolicyHead : std::uint8_t {
  FromTo4096,     // RDTChess: output from * 64 + to is the move's logit; under-promotions have none
  Planes12,       // the Tahl document: output plane * 64 + square is z for the piece planes after
                  // the move
  Moves1858,      // lc0: every move of a queen or a knight on an empty board, then promotions
  Planes73,       // lc0: output plane * 64 + from, a plane for each direction and distance
  Attention4288,  // lc0: output from * 64 + to, then promotions
};
std::string_view to_string(PolicyHead head);  // "fromto4096", "planes12", "moves1858", ...
Expected<PolicyHead> parse_policy_head(std::string_view name);
int policy_outputs(PolicyHead head);

// A move's logit is a sum of at most four outputs, each added or subtracted:
//   Planes12  + outputs (plane, square) that become 1, - those that become 0; planes 0-5 our P N B
//             R Q K, 6-11 theirs
//   others    one output
struct PolicyTerms {
  std::array<std::uint16_t, 4> output{};
  std::array<std::int8_t, 4> sign{};  // +1 or -1; 0 beyond `count`
  int count = 0;                      // 0: this head cannot express the move

  float sum(const float* outputs) const {  // the logit, given one position's outputs
    float logit = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      logit += static_cast<float>(sign[i]) * outputs[output[i]];
    return logit;
  }
};
// Precondition: m is legal in `position`.
PolicyTerms policy_terms(PolicyHead head, const Position& position, Move m, Frame frame);
inline PolicyTerms policy_terms(PolicyHead head, const Position& position, Move m) {
  return policy_terms(head, position, m, mover_frame(position));
}

// The logit of `m`, or nothing if the head cannot express it. `outputs` are one position's,
// policy_outputs(head) long.
std::optional<float> policy_logit(PolicyHead head, const Position& position, Move m,
                                  std::span<const float> outputs);

// RDTChess's index of a move, from * 64 + to in the mover's frame with castling as the king's
// two-square step; nothing for an under-promotion.
std::optional<int> fromto_index(const Position& position, Move m);

// lc0's outputs of a move from one square of the frame to another; `promotion` is None or the
// piece, of which the knight is not told from a move without promotion. Castling is the king taking
// his rook. Precondition: a queen or a knight could go there; promotions go from the seventh rank
// to the eighth.
int moves1858_index(Square from, Square to, PieceType promotion);
int planes73_index(Square from, Square to, PieceType promotion);
int attention4288_index(Square from, Square to, PieceType promotion);

}  // namespace tahl::nn
