#include "nn/sample.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "chess/fen.h"

namespace tahl::nn {
namespace {

constexpr char kMagic[] = "TAHLSHRD";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kBlockMagic = 0x314b4c42;
constexpr std::size_t kFileHeader = 16;
constexpr std::size_t kBlockHeader = 24;
constexpr std::size_t kGameHeader = 11;

template <class T>
void put(std::vector<std::uint8_t>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

template <class T>
T take(const std::uint8_t* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{at[i]} << (8 * i);
  return static_cast<T>(value);
}

// How long the game that starts at `at` is, or nothing if it does not fit in `room` bytes.
std::optional<std::size_t> game_bytes(const std::uint8_t* at, std::size_t room) {
  if (room < kGameHeader) return std::nullopt;
  std::size_t need = kGameHeader + take<std::uint16_t>(at + 9);
  if (at[0] >> 2 & 1) {
    if (room < kGameHeader + 1) return std::nullopt;
    need += std::size_t{1} + at[kGameHeader];
  }
  return need <= room ? std::optional(need) : std::nullopt;
}

// The order of legal moves that shards are written in; it does not follow the layout of Move.
int shard_order(Move m) {
  const int promotion = m.is_promotion() ? index(m.promotion()) - 1 : 0;
  return promotion << 14 | static_cast<int>(m.kind()) << 12 | m.to() << 6 | m.from();
}

}  // namespace

std::uint8_t move_index(const MoveList& legal, Move m) {
  int lower = 0;
  for (const Move other : legal) lower += shard_order(other) < shard_order(m);
  return static_cast<std::uint8_t>(lower);
}

Move move_at(MoveList& legal, std::uint8_t number) {
  std::nth_element(legal.begin(), legal.begin() + number, legal.end(),
                   [](Move a, Move b) { return shard_order(a) < shard_order(b); });
  return legal[number];
}

Expected<GameRecord> pack_game(const Game& game) {
  if (game.moves().size() > kMaxPlies)
    return fail("game: {} plies, and {} is the most", game.moves().size(), kMaxPlies);
  GameRecord record;
  record.chess960 = game.is_chess960();
  if (record.chess960 || to_fen(game.start()) != to_fen(Position::initial()))
    record.start_fen = to_fen(game.start(), record.chess960 ? FenStyle::Shredder : FenStyle::XFen);
  if (record.start_fen.size() > 255)
    return fail("game: its start position has a fen of {} bytes", record.start_fen.size());
  record.moves.reserve(game.moves().size());
  for (std::size_t ply = 0; ply < game.moves().size(); ++ply) {
    const Move m = game.moves()[ply];
    if (!m) return fail("game: ply {} is a null move", ply + 1);
    record.moves.push_back(move_index(legal_moves(game.positions()[ply]), m));
  }
  return record;
}

Expected<Game> unpack_game(const GameView& record) {
  Game game;
  if (!record.start_fen.empty()) {
    const auto start = parse_fen(record.start_fen, record.chess960);
    if (!start) return tl::unexpected(start.error());
    game = Game(*start, record.chess960);
  }
  for (std::size_t ply = 0; ply < record.moves.size(); ++ply) {
    MoveList legal = legal_moves(game.position());
    if (record.moves[ply] >= legal.size())
      return fail("game: ply {} is move {} of {} legal ones", ply + 1, record.moves[ply],
                  legal.size());
    game.play(move_at(legal, record.moves[ply]));
  }
  return game;
}

std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  std::uint64_t h = 0xcbf29ce484222325ull ^ seed;
  for (const std::uint8_t b : bytes) h = (h ^ b) * 0x100000001b3ull;
  h ^= h >> 33;  // MurmurHash3's finaliser: FNV's high bits alone are too regular to split games by
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ h >> 33;
}

std::uint64_t hash_game(std::string_view start_fen, std::span<const std::uint8_t> moves) {
  const std::uint64_t start =
      start_fen.empty()
          ? 0
          : hash_bytes({reinterpret_cast<const std::uint8_t*>(start_fen.data()), start_fen.size()});
  return hash_bytes(moves, start);
}

void append_game(const GameRecord& game, std::vector<std::uint8_t>& payload) {
  const int flags = static_cast<int>(game.result) | (game.start_fen.empty() ? 0 : 4) |
                    (game.chess960 ? 8 : 0) | static_cast<int>(game.time_class) << 4;
  put(payload, static_cast<std::uint8_t>(flags));
  put(payload, game.white_elo);
  put(payload, game.black_elo);
  put(payload, game.year);
  put(payload, game.month);
  put(payload, game.day);
  put(payload, static_cast<std::uint16_t>(game.moves.size()));
  if (!game.start_fen.empty()) {
    put(payload, static_cast<std::uint8_t>(game.start_fen.size()));
    payload.insert(payload.end(), game.start_fen.begin(), game.start_fen.end());
  }
  payload.insert(payload.end(), game.moves.begin(), game.moves.end());
}

std::vector<std::uint8_t> make_block(std::span<const std::uint8_t> payload, std::uint32_t games,
                                     std::uint32_t plies) {
  std::vector<std::uint8_t> block;
  block.reserve(kBlockHeader + payload.size());
  put(block, kBlockMagic);
  put(block, static_cast<std::uint32_t>(payload.size()));
  put(block, games);
  put(block, plies);
  put(block, hash_bytes(payload));
  block.insert(block.end(), payload.begin(), payload.end());
  return block;
}

std::array<std::uint8_t, 16> shard_header() {
  std::array<std::uint8_t, 16> header{};
  std::memcpy(header.data(), kMagic, 8);
  header[8] = kVersion;
  return header;
}

Expected<Shard> Shard::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) return fail("shard: cannot read {}", path.string());
  std::vector<std::uint8_t> bytes(size);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    return fail("shard: {} ends before its {} bytes are read", path.string(), size);
  return parse(std::move(bytes), path.string());
}

Expected<Shard> Shard::parse(std::vector<std::uint8_t> bytes, const std::string& name) {
  Shard shard;
  shard.bytes_ = std::move(bytes);
  const auto& b = shard.bytes_;
  if (b.size() < kFileHeader || std::memcmp(b.data(), kMagic, 8) != 0)
    return fail("shard: {} is no shard file", name);
  if (const auto version = take<std::uint32_t>(b.data() + 8); version != kVersion)
    return fail("shard: {} has version {}, and this program reads {}", name, version, kVersion);
  std::size_t at = kFileHeader;
  for (std::size_t block = 0; at < b.size(); ++block) {
    if (b.size() - at < kBlockHeader)
      return fail("shard: {}: block {} is cut off in its header", name, block);
    const std::uint8_t* head = b.data() + at;
    const std::size_t length = take<std::uint32_t>(head + 4);
    const std::uint32_t games = take<std::uint32_t>(head + 8),
                        plies = take<std::uint32_t>(head + 12);
    const std::uint64_t hash = take<std::uint64_t>(head + 16);
    if (take<std::uint32_t>(head) != kBlockMagic)
      return fail("shard: {}: no block begins at byte {}", name, at);
    at += kBlockHeader;
    if (b.size() - at < length) return fail("shard: {}: block {} is cut off", name, block);
    if (hash_bytes({b.data() + at, length}) != hash)
      return fail("shard: {}: block {} has been altered", name, block);
    const std::size_t end = at + length;
    std::uint64_t counted = 0, first = shard.offsets_.size();
    while (at < end) {
      const auto need = game_bytes(b.data() + at, end - at);
      if (!need) return fail("shard: {}: a game overruns block {}", name, block);
      counted += take<std::uint16_t>(b.data() + at + 9);
      shard.offsets_.push_back(at);
      at += *need;
    }
    if (shard.offsets_.size() - first != games || counted != plies)
      return fail("shard: {}: block {} says {} games of {} plies and holds {} of {}", name, block,
                  games, plies, shard.offsets_.size() - first, counted);
    shard.plies_ += plies;
    const std::array<std::uint8_t, 8> mixed = std::bit_cast<std::array<std::uint8_t, 8>>(hash);
    shard.hash_ = hash_bytes(mixed, shard.hash_);
  }
  return shard;
}

GameView Shard::game(std::size_t i) const {
  const std::uint8_t* at = bytes_.data() + offsets_[i];
  GameView game;
  game.result = static_cast<Result>(at[0] & 3);
  game.chess960 = at[0] >> 3 & 1;
  game.time_class = static_cast<TimeClass>(std::min(at[0] >> 4 & 7, 5));
  game.white_elo = take<std::uint16_t>(at + 1);
  game.black_elo = take<std::uint16_t>(at + 3);
  game.year = take<std::uint16_t>(at + 5);
  game.month = at[7];
  game.day = at[8];
  const std::size_t plies = take<std::uint16_t>(at + 9);
  const bool has_fen = at[0] >> 2 & 1;
  at += kGameHeader;
  if (has_fen) {
    game.start_fen = {reinterpret_cast<const char*>(at) + 1, at[0]};
    at += std::size_t{1} + at[0];
  }
  game.moves = {at, plies};
  return game;
}

}  // namespace tahl::nn
