#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "chess/error.h"
#include "chess/position.h"

namespace tahl::nn {

// How a network's policy output is read. Both work in the mover's frame (see encoding.h).
enum class PolicyHead : std::uint8_t {
  FromTo4096,  // RDTChess: output from * 64 + to is the move's logit; under-promotions have none
  Planes12,    // the Tahl document: output plane * 64 + square is z for the piece planes after the
               // move
};
std::string_view to_string(PolicyHead head);  // "fromto4096", "planes12"
Expected<PolicyHead> parse_policy_head(std::string_view name);
int policy_outputs(PolicyHead head);  // 4096 or 768

// A move's logit is a sum of at most four outputs, each added or subtracted:
//   FromTo4096  one output
//   Planes12    + outputs (plane, square) that become 1, - those that become 0; planes 0-5 our P N
//   B R Q K, 6-11 theirs
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
PolicyTerms policy_terms(PolicyHead head, const Position& position, Move m);

// The logit of `m`, or nothing if the head cannot express it. `outputs` are one position's,
// policy_outputs(head) long.
std::optional<float> policy_logit(PolicyHead head, const Position& position, Move m,
                                  std::span<const float> outputs);

// RDTChess's index of a move, from * 64 + to in the mover's frame with castling as the king's
// two-square step; nothing for an under-promotion.
std::optional<int> fromto_index(const Position& position, Move m);

}  // namespace tahl::nn
