#pragma once

#include <cstdint>
#include <span>

#include "chess/error.h"
#include "nn/net_file.h"

namespace tahl::nn {

// Leela Chess Zero's weights file, a protobuf message (github.com/LeelaChessZero/lczero-common,
// proto/net.proto), as it is or inside gzip, as a net of the family "lc0" with the encoding that
// the file names. Batch norms are folded into the convolutions before them; the moves-left head is
// left out. Nets whose body is a transformer, or that have several heads, are refused by name.
//
// Memory stays within a few times the file's size: gzip may not unpack to much more than that.
// Errors name no file. The tensors still want check_tensors().
Expected<NetFile> parse_lc0(std::span<const std::uint8_t> bytes);
// Whether the bytes begin like one, or like gzip.
bool looks_like_lc0(std::span<const std::uint8_t> bytes);

}  // namespace tahl::nn
