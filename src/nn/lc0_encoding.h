#pragma once

#include <cstdint>
#include <span>

#include "chess/game.h"
#include "nn/encoding.h"

namespace tahl::nn {

// The 112 planes of Leela Chess Zero's nets, in the five forms that its files number 1 to 5; the
// plane list and what sets the forms apart are in docs/encodings.md. All need the moves of the
// game.
enum class Lc0Format : std::uint8_t {
  Classical,      // of Maia and most convolutional nets
  CastlingRooks,  // castling rights are shown by the rooks, so they are clear in Chess960
  Canonical,    // en passant has a plane; the board is turned so that it looks the same however it
                // lies; history ends with what cannot be repeated
  Hectoplies,   // the same with the halfmove clock / 100
  CanonicalV2,  // the same with only repeated positions as history
};
inline constexpr int kLc0Planes = 112;

// Precondition: out.size() == 112 * 64.
void encode_lc0(Lc0Format format, const Game& game, std::span<float> out);
Frame lc0_frame(Lc0Format format, const Position& position);

}  // namespace tahl::nn
