#include "nn/encoding.h"

#include <algorithm>
#include <cassert>

#include "nn/lc0_encoding.h"

namespace tahl::nn {
namespace {

constexpr std::size_t kBinaryPlanes = 17;

template <Lc0Format format>
constexpr Encoding lc0_encoding(std::string_view name) {
  return {name, kLc0Planes,
          [](const Game& game, std::span<float> out) { encode_lc0(format, game, out); },
          [](const Position& position) { return lc0_frame(format, position); }};
}
constexpr Encoding kEncodings[] = {
    {"rdt19", kRdt19Planes, encode_rdt19, mover_frame},
    lc0_encoding<Lc0Format::Classical>("lc0-112"),
    lc0_encoding<Lc0Format::CastlingRooks>("lc0-112-castling"),
    lc0_encoding<Lc0Format::Canonical>("lc0-112-canonical"),
    lc0_encoding<Lc0Format::Hectoplies>("lc0-112-hectoplies"),
    lc0_encoding<Lc0Format::CanonicalV2>("lc0-112-v2"),
};

// The board with its ranks swapped, so that Black plays up it.
Bitboard in_frame(Bitboard b, Color mover) {
  return mover == Color::White ? b : __builtin_bswap64(b);
}

}  // namespace

std::span<const Encoding> encodings() { return kEncodings; }

const Encoding* find_encoding(std::string_view name) {
  for (const Encoding& encoding : kEncodings)
    if (encoding.name == name) return &encoding;
  return nullptr;
}

PackedPlanes pack_rdt19(const Position& p, bool repeated) {
  PackedPlanes packed{};
  const Color us = p.side_to_move();
  std::size_t plane = 0;
  for (const Color c : {us, ~us})
    for (const PieceType t : kPieceTypes) packed.squares[plane++] = in_frame(p.pieces(c, t), us);
  for (const Color c : {us, ~us})
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen})
      packed.squares[plane++] = p.can_castle(c, side) ? ~Bitboard{0} : 0;
  if (p.en_passant_square() != kNoSquare)
    packed.squares[plane] = in_frame(bit(p.en_passant_square()), us);
  packed.fifty = static_cast<float>(std::min(p.halfmove_clock(), 100)) / 100.0f;
  packed.repetition = repeated ? 1.0f : 0.0f;
  return packed;
}

void unpack_rdt19(const PackedPlanes& packed, std::span<float> out) {
  assert(out.size() == kRdt19Planes * 64);
  float* next = out.data();
  for (const Bitboard squares : packed.squares)
    for (int s = 0; s < 64; ++s) *next++ = static_cast<float>(squares >> s & 1);
  next = std::fill_n(next, 64, packed.fifty);
  std::fill_n(next, 64, packed.repetition);
}

void encode_rdt19(const Game& game, std::span<float> out) {
  unpack_rdt19(pack_rdt19(game.position(), game.repetitions() > 1), out);
}

std::vector<Plane> rdt19_planes(const Game& game) {
  const PackedPlanes packed = pack_rdt19(game.position(), game.repetitions() > 1);
  std::vector<Plane> planes(kRdt19Planes);
  for (std::size_t i = 0; i < kBinaryPlanes; ++i) planes[i].squares = packed.squares[i];
  planes[17] = {0, packed.fifty, true};
  planes[18] = {0, packed.repetition, true};
  return planes;
}

}  // namespace tahl::nn
