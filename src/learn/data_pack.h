#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "chess/error.h"
#include "nn/sample.h"

namespace tahl::learn {

enum class Split : std::uint8_t { Train, Val, Test };
inline constexpr Split kSplits[] = {Split::Train, Split::Val, Split::Test};
std::string_view to_string(Split s);  // "train", "val", "test"
Expected<Split> parse_split(std::string_view name);

struct PackOptions {
  std::vector<std::filesystem::path> inputs;  // .pgn or .pgn.zst, read in this order
  std::filesystem::path out;                  // a folder, made if missing
  int min_elo = 0;    // of the weaker player; above 0, games without both ratings are left out
  int min_plies = 8;  // shorter games are left out
  double val = 0.01;  // shares of the games held back, chosen by a hash of start and moves
  double test = 0.01;
  int shard = 0,
      shards =
          1;  // takes every game whose number is `shard` modulo `shards`, and writes its own files
  std::uint64_t max_games = 0;  // stops after so many kept games; 0: never
};

struct PackCounts {
  std::uint64_t seen = 0;        // games of this shard's share
  std::uint64_t below_elo = 0;   // left out: rating below min_elo or missing
  std::uint64_t bad = 0;         //   an illegal or unreadable move
  std::uint64_t unfinished = 0;  //   no result
  std::uint64_t too_short = 0;
  std::uint64_t duplicate = 0;  //   same start and moves as an earlier one of this shard
  std::array<std::uint64_t, 3> games{}, plies{};  // kept, by Split
  std::uint64_t kept() const { return games[0] + games[1] + games[2]; }
  bool operator==(const PackCounts&) const = default;
};

struct PackProgress {
  PackCounts counts;
  std::size_t input = 0;         // index into PackOptions::inputs
  std::uint64_t text_bytes = 0;  // read of it, decompressed
};

struct PackReport {
  PackCounts counts;
  bool stopped = false;       // by `stop`: run again to continue
  bool already_done = false;  // nothing to do
  std::vector<std::filesystem::path> files;
};

// Packs games into DIR/{train,val,test}-00000-of-00001.tshard (nn/sample.h). A split depends on a
// game's moves only, so copies of a game go the same way, whichever run packs them. Stopped or
// killed, it continues when run again with the same options, and the files come out byte for byte
// as from an unbroken run: until it is done they are called *.part, beside a *.state file.
// `progress` is called a few times a second.
Expected<PackReport> pack(const PackOptions& options, std::stop_token stop = {},
                          const std::function<void(const PackProgress&)>& progress = {});

Split split_of(std::uint64_t game_hash, double val, double test);

// The shards of a split in a folder, by name; or the file itself. Refuses a folder without any.
Expected<std::vector<std::filesystem::path>> find_shards(const std::filesystem::path& folder,
                                                         Split split);

}  // namespace tahl::learn
