#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"
#include "chess/movegen.h"

namespace tahl::nn {

// Games as training data: about one byte a ply. Self-play and PGN packing write it, training reads
// it.
//
//   file    "TAHLSHRD", u32 version 1, u32 zero, then blocks to the end of the file
//   block   u32 0x314b4c42 ("BLK1"), u32 payload bytes, u32 games, u32 plies, u64
//   hash_bytes(payload), payload game    u8  bits 0-1 result (0 White won, 1 Black won, 2 drawn, 3
//   unknown), 2 a FEN follows, 3 Chess960, 4-6 TimeClass
//           u16 White's Elo, u16 Black's (0 unknown), u16 year (0 unknown), u8 month, u8 day, u16
//           plies [u8 length, FEN] one byte a ply: the move's index among the legal moves sorted by
//           Move::bits()
//
// Little-endian. The order of the legal moves is the bits' and so no generator's. There is no index
// in the file: game headers give their lengths, so every game is found by reading those once.

inline constexpr std::size_t kMaxPlies = 65535;

enum class TimeClass : std::uint8_t { Unknown, Bullet, Blitz, Rapid, Classical, Correspondence };

// All that is kept of a game.
struct GameRecord {
  Result result = Result::Unknown;
  TimeClass time_class = TimeClass::Unknown;
  bool chess960 = false;
  std::uint16_t white_elo = 0, black_elo = 0;
  std::uint16_t year = 0;
  std::uint8_t month = 0, day = 0;
  std::string start_fen;            // empty for the usual start
  std::vector<std::uint8_t> moves;  // indices, see above
};

// The same without copies, as read: `start_fen` and `moves` point into the shard's bytes.
struct GameView {
  Result result = Result::Unknown;
  TimeClass time_class = TimeClass::Unknown;
  bool chess960 = false;
  std::uint16_t white_elo = 0, black_elo = 0;
  std::uint16_t year = 0;
  std::uint8_t month = 0, day = 0;
  std::string_view start_fen;
  std::span<const std::uint8_t> moves;
};

// The number of `m` among `legal`, counted in the order of their bits. Precondition: it is one of
// them.
std::uint8_t move_index(const MoveList& legal, Move m);
// The move with that number. Reorders `legal`. Precondition: number < legal.size().
Move move_at(MoveList& legal, std::uint8_t number);

// Moves and start of `game`. Refuses games of more than kMaxPlies plies, null moves and start FENs
// over 255 bytes.
Expected<GameRecord> pack_game(const Game& game);
// Plays the record. Refuses a number that no legal move has.
Expected<Game> unpack_game(const GameView& record);

// 64 well-mixed bits of some bytes: FNV-1a and a finaliser. Stable: files and splits depend on it.
std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0);
// The same for start and moves alone, so that copies of a game with other tags agree.
std::uint64_t hash_game(std::string_view start_fen, std::span<const std::uint8_t> moves);

void append_game(const GameRecord& game, std::vector<std::uint8_t>& payload);

// Payload with its block header, ready to be appended to a file.
std::vector<std::uint8_t> make_block(std::span<const std::uint8_t> payload, std::uint32_t games,
                                     std::uint32_t plies);
std::array<std::uint8_t, 16> shard_header();

// A whole file in memory, checked: structure, lengths and hashes. Move numbers are checked when
// games are played.
class Shard {
 public:
  static Expected<Shard> open(const std::filesystem::path& path);
  static Expected<Shard> parse(std::vector<std::uint8_t> bytes, const std::string& name);

  std::size_t size() const { return offsets_.size(); }  // games
  std::uint64_t plies() const { return plies_; }
  GameView game(std::size_t i) const;
  std::uint64_t hash() const { return hash_; }  // of all block hashes: names the contents
  std::size_t bytes() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t plies_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace tahl::nn
