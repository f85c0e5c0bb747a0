#include "learn/data_pack.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <unordered_set>
#include <utility>

#include "chess/pgn.h"

namespace tahl::learn {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlockPayload = 256 << 10;  // about 3,000 games
constexpr auto kStateEvery = std::chrono::seconds(5);
constexpr auto kProgressEvery = std::chrono::milliseconds(250);

struct Output {
  std::vector<std::uint8_t> pending;  // payload of the block that is being filled
  std::uint32_t pending_games = 0, pending_plies = 0;
  std::uint64_t committed = 0;  // bytes of the file that belong to it
  std::ofstream file;
  fs::path part, done;
};

// Where a run stands; everything that a later run needs to write the same bytes.
struct State {
  std::uint64_t input = 0;           // index of the file being read
  std::uint64_t games_in_input = 0;  // games of it that are dealt with, all shards' shares counted
  PackCounts counts;
  std::array<Output, 3> outputs;
};

class Bytes {
 public:
  void put(std::uint64_t v) {
    for (int i = 0; i < 8; ++i) data_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  void put(std::span<const std::uint8_t> v) {
    put(v.size());
    data_.insert(data_.end(), v.begin(), v.end());
  }
  const std::vector<std::uint8_t>& data() const { return data_; }

 private:
  std::vector<std::uint8_t> data_;
};

class BytesReader {
 public:
  explicit BytesReader(std::span<const std::uint8_t> data) : data_(data) {}
  std::uint64_t number() {
    std::uint64_t v = 0;
    if (data_.size() < 8) return ok_ = false, 0;
    for (std::size_t i = 0; i < 8; ++i) v |= std::uint64_t{data_[i]} << (8 * i);
    data_ = data_.subspan(8);
    return v;
  }
  std::vector<std::uint8_t> bytes() {
    const std::uint64_t n = number();
    if (n > data_.size()) return ok_ = false, std::vector<std::uint8_t>{};
    std::vector<std::uint8_t> v(data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(n));
    data_ = data_.subspan(n);
    return v;
  }
  bool ok() const { return ok_; }

 private:
  std::span<const std::uint8_t> data_;
  bool ok_ = true;
};

// Counters in one order, for reading and writing.
template <class Counts, class F>
void each_count(Counts& c, F f) {
  f(c.seen), f(c.below_elo), f(c.bad), f(c.unfinished), f(c.too_short), f(c.duplicate);
  for (auto& n : c.games) f(n);
  for (auto& n : c.plies) f(n);
}

constexpr std::uint64_t kStateMagic = 0x3145544154534c54;  // "TLSTATE1"

// What a run must share with the one it continues.
std::uint64_t fingerprint(const PackOptions& o) {
  std::string text = fmt::format("{} {} {} {} {} {} {}", o.min_elo, o.min_plies, o.val, o.test,
                                 o.shard, o.shards, o.max_games);
  for (const auto& input : o.inputs) {
    std::error_code error;
    text += fmt::format("\n{} {}", input.string(), fs::file_size(input, error));
  }
  return nn::hash_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::optional<Error> replace_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
  const fs::path temporary = path.string() + ".new";
  std::ofstream out(temporary, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) fs::rename(temporary, path, error);
  if (!out || error) return Error{fmt::format("pack: cannot write {}", path.string())};
  return std::nullopt;
}

std::optional<Error> save_state(const fs::path& path, std::uint64_t print, State& s) {
  for (Output& o : s.outputs) {
    o.file.flush();
    if (!o.file) return Error{fmt::format("pack: cannot write {}", o.part.string())};
  }
  Bytes b;
  b.put(kStateMagic);
  b.put(print);
  b.put(s.input);
  b.put(s.games_in_input);
  each_count(s.counts, [&](std::uint64_t n) { b.put(n); });
  for (const Output& o : s.outputs) {
    b.put(o.committed);
    b.put(o.pending_games);
    b.put(o.pending_plies);
    b.put(std::span<const std::uint8_t>(o.pending));
  }
  return replace_file(path, b.data());
}

// False if there is none; an error if it is another run's or damaged.
Expected<bool> load_state(const fs::path& path, std::uint64_t print, State& s) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  BytesReader r({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  if (r.number() != kStateMagic)
    return fail("pack: {} is no state file of this program", path.string());
  if (r.number() != print)
    return fail(
        "pack: {} belongs to a run with other options or inputs; repeat those or choose another "
        "folder",
        path.string());
  s.input = r.number();
  s.games_in_input = r.number();
  each_count(s.counts, [&](std::uint64_t& n) { n = r.number(); });
  for (Output& o : s.outputs) {
    o.committed = r.number();
    o.pending_games = static_cast<std::uint32_t>(r.number());
    o.pending_plies = static_cast<std::uint32_t>(r.number());
    o.pending = r.bytes();
  }
  if (!r.ok()) return fail("pack: {} is cut off", path.string());
  return true;
}

void flush_block(Output& o) {
  if (o.pending_games == 0) return;
  const auto block = nn::make_block(o.pending, o.pending_games, o.pending_plies);
  o.file.write(reinterpret_cast<const char*>(block.data()),
               static_cast<std::streamsize>(block.size()));
  o.committed += block.size();
  o.pending.clear();
  o.pending_games = o.pending_plies = 0;
}

// Opens the part files at what the state says of them, and learns which games they hold.
std::optional<Error> open_outputs(State& s, bool resumed,
                                  std::unordered_set<std::uint64_t>& known) {
  for (Output& o : s.outputs) {
    std::error_code error;
    if (resumed) {
      fs::resize_file(o.part, o.committed, error);
      if (error) return Error{fmt::format("pack: cannot continue {}", o.part.string())};
      const auto learn = [&](const Expected<nn::Shard>& shard) -> std::optional<Error> {
        if (!shard) return shard.error();
        for (std::size_t i = 0; i < shard->size(); ++i)
          known.insert(nn::hash_game(shard->game(i).start_fen, shard->game(i).moves));
        return std::nullopt;
      };
      if (auto problem = learn(nn::Shard::open(o.part))) return problem;
      const auto header = nn::shard_header();
      std::vector<std::uint8_t> pending(header.begin(), header.end());
      const auto block = nn::make_block(o.pending, o.pending_games, o.pending_plies);
      pending.insert(pending.end(), block.begin(), block.end());
      if (auto problem = learn(nn::Shard::parse(std::move(pending), "pending games")))
        return problem;
      o.file.open(o.part, std::ios::binary | std::ios::app);
    } else {
      o.file.open(o.part, std::ios::binary | std::ios::trunc);
      const auto header = nn::shard_header();
      o.file.write(reinterpret_cast<const char*>(header.data()), header.size());
      o.committed = header.size();
    }
    if (!o.file) return Error{fmt::format("pack: cannot write {}", o.part.string())};
  }
  return std::nullopt;
}

std::uint16_t clamp16(int n) { return static_cast<std::uint16_t>(std::clamp(n, 0, 65535)); }

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int n = 0;
  if (text.size() < from + count) return 0;
  const auto [end, problem] = std::from_chars(text.data() + from, text.data() + from + count, n);
  return problem == std::errc{} && end == text.data() + from + count ? n : 0;
}

// Lichess's classes: by the base time and forty increments.
nn::TimeClass time_class_of(std::string_view control) {
  if (control.find('/') != std::string_view::npos) return nn::TimeClass::Unknown;
  int base = 0, increment = 0;
  const auto* end = control.data() + control.size();
  const auto first = std::from_chars(control.data(), end, base);
  if (first.ec != std::errc{}) return nn::TimeClass::Unknown;
  if (first.ptr != end && *first.ptr == '+') std::from_chars(first.ptr + 1, end, increment);
  if (base < 0 || base > 100000 || increment < 0 || increment > 10000)
    return nn::TimeClass::Unknown;
  const int estimate = base + 40 * increment;
  if (estimate < 180) return nn::TimeClass::Bullet;
  if (estimate < 480) return nn::TimeClass::Blitz;
  return estimate < 1500 ? nn::TimeClass::Rapid : nn::TimeClass::Classical;
}

void describe(const PgnTags& tags, nn::GameRecord& record) {
  record.white_elo = clamp16(tags.elo(Color::White).value_or(0));
  record.black_elo = clamp16(tags.elo(Color::Black).value_or(0));
  const auto date = tags.known("UTCDate") ? tags.known("UTCDate") : tags.known("Date");
  if (date) {
    record.year = clamp16(digits(*date, 0, 4));
    record.month = static_cast<std::uint8_t>(digits(*date, 5, 2));
    record.day = static_cast<std::uint8_t>(digits(*date, 8, 2));
  }
  if (const auto control = tags.known("TimeControl")) record.time_class = time_class_of(*control);
}

std::optional<Error> check(const PackOptions& o) {
  if (o.inputs.empty()) return Error{"pack: no input files"};
  if (!(o.val >= 0 && o.test >= 0 && o.val + o.test < 1))
    return Error{
        fmt::format("pack: shares {} for validation and {} for testing leave nothing to train on",
                    o.val, o.test)};
  if (o.shards < 1 || o.shard < 0 || o.shard >= o.shards)
    return Error{fmt::format("pack: no shard {} of {} (the first is 0)", o.shard, o.shards)};
  for (const auto& input : o.inputs)
    if (std::error_code error; !fs::is_regular_file(input, error))
      return Error{fmt::format("pack: there is no file {}", input.string())};
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Split s) {
  switch (s) {
    case Split::Train:
      return "train";
    case Split::Val:
      return "val";
    case Split::Test:
      break;
  }
  return "test";
}

Expected<Split> parse_split(std::string_view name) {
  for (const Split s : kSplits)
    if (to_string(s) == name) return s;
  return fail("split: \"{}\" is none of train, val, test", tahl::quoted(name));
}

Split split_of(std::uint64_t game_hash, double val, double test) {
  const double at = static_cast<double>(game_hash >> 11) * 0x1p-53;
  return at < test ? Split::Test : at < test + val ? Split::Val : Split::Train;
}

Expected<PackReport> pack(const PackOptions& options, std::stop_token stop,
                          const std::function<void(const PackProgress&)>& progress) {
  if (auto problem = check(options)) return tl::unexpected(*problem);
  std::error_code error;
  fs::create_directories(options.out, error);
  if (!fs::is_directory(options.out))
    return fail("pack: cannot make the folder {}", options.out.string());

  PackReport report;
  State s;
  const std::string suffix = fmt::format("{:05}-of-{:05}", options.shard, options.shards);
  for (const Split split : kSplits) {
    Output& o = s.outputs[static_cast<std::size_t>(split)];
    o.done = options.out / fmt::format("{}-{}.tshard", to_string(split), suffix);
    o.part = o.done.string() + ".part";
    report.files.push_back(o.done);
  }
  const fs::path state_path = options.out / fmt::format("pack-{}.state", suffix);
  const fs::path done_path = options.out / fmt::format("pack-{}.done", suffix);
  const std::uint64_t print = fingerprint(options);
  if (fs::exists(done_path)) {
    const auto same = load_state(done_path, print, s);
    if (!same) return tl::unexpected(same.error());
    for (const Output& o : s.outputs)  // a run that died between its last two steps
      if (fs::exists(o.part)) fs::rename(o.part, o.done, error);
    report.counts = s.counts;
    report.already_done = true;
    return report;
  }
  const auto resumed = load_state(state_path, print, s);
  if (!resumed) return tl::unexpected(resumed.error());
  if (!*resumed)
    for (const Output& o : s.outputs)
      if (fs::exists(o.done)) return fail("pack: {} is already there", o.done.string());
  std::unordered_set<std::uint64_t> known;
  if (auto problem = open_outputs(s, *resumed, known)) return tl::unexpected(*problem);

  auto last_state = Clock::now(), last_progress = last_state;
  bool enough = options.max_games > 0 && s.counts.kept() >= options.max_games;
  for (; s.input < options.inputs.size() && !report.stopped && !enough;
       ++s.input, s.games_in_input = 0) {
    const auto& input = options.inputs[s.input];
    // Tags decide first: the moves of other shards' games and of weak ones are never looked at.
    std::uint64_t number = 0;
    const std::uint64_t skip = s.games_in_input;
    std::uint64_t below = 0, share = 0;
    PgnOptions reading;
    reading.check_variations = false;
    reading.wanted = [&](const PgnTags& tags) {
      const std::uint64_t n = number++;
      if (n < skip || n % static_cast<std::uint64_t>(options.shards) !=
                          static_cast<std::uint64_t>(options.shard))
        return false;
      ++share;
      if (options.min_elo <= 0) return true;
      const bool strong = tags.elo(Color::White).value_or(0) >= options.min_elo &&
                          tags.elo(Color::Black).value_or(0) >= options.min_elo;
      below += !strong;
      return strong;
    };
    auto reader = PgnReader::open(input, reading);
    if (!reader) return tl::unexpected(reader.error());
    // The filter may have read ahead of the game in hand, so its counts are added only with the
    // game after them.
    const auto settle = [&](std::uint64_t games) {
      s.games_in_input = games;
      s.counts.seen += std::exchange(share, 0);
      s.counts.below_elo += std::exchange(below, 0);
    };
    const PgnGame* game = nullptr;
    while ((game = reader->next()) != nullptr) {
      settle(game->number);
      if (!game->ok()) {
        ++s.counts.bad;
      } else if (game->result == Result::Unknown) {
        ++s.counts.unfinished;
      } else if (game->moves.size() < static_cast<std::size_t>(options.min_plies)) {
        ++s.counts.too_short;
      } else if (auto record = nn::pack_game(to_game(*game)); !record) {
        ++s.counts.bad;
      } else {
        record->result = game->result;
        describe(game->tags, *record);
        const std::uint64_t hash = nn::hash_game(record->start_fen, record->moves);
        if (!known.insert(hash).second) {
          ++s.counts.duplicate;
        } else {
          const auto split = static_cast<std::size_t>(split_of(hash, options.val, options.test));
          Output& o = s.outputs[split];
          nn::append_game(*record, o.pending);
          ++o.pending_games;
          o.pending_plies += static_cast<std::uint32_t>(record->moves.size());
          ++s.counts.games[split];
          s.counts.plies[split] += record->moves.size();
          if (o.pending.size() >= kBlockPayload) flush_block(o);
          enough = options.max_games > 0 && s.counts.kept() >= options.max_games;
        }
      }
      if (stop.stop_requested() || enough) break;
      const auto now = Clock::now();
      if (progress && now - last_progress >= kProgressEvery) {
        progress({s.counts, s.input, reader->bytes_read()});
        last_progress = now;
      }
      if (now - last_state >= kStateEvery) {
        if (auto problem = save_state(state_path, print, s)) return tl::unexpected(*problem);
        last_state = now;
      }
    }
    report.stopped = stop.stop_requested() && !enough;
    if (report.stopped) {
      if (auto problem = save_state(state_path, print, s)) return tl::unexpected(*problem);
      report.counts = s.counts;
      return report;
    }
    if (!enough) {
      if (reader->error()) return tl::unexpected(*reader->error());
      settle(number);
    }
  }

  for (Output& o : s.outputs) {
    flush_block(o);
    o.file.close();
    if (!o.file) return fail("pack: cannot write {}", o.part.string());
  }
  if (auto problem = save_state(done_path, print, s)) return tl::unexpected(*problem);
  for (Output& o : s.outputs) {
    fs::rename(o.part, o.done, error);
    if (error) return fail("pack: cannot rename {}", o.part.string());
  }
  fs::remove(state_path, error);
  report.counts = s.counts;
  return report;
}

Expected<std::vector<fs::path>> find_shards(const fs::path& folder, Split split) {
  std::error_code error;
  if (fs::is_regular_file(folder, error)) return std::vector{folder};
  std::vector<fs::path> found;
  const std::string prefix = fmt::format("{}-", to_string(split));
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".tshard" && it->path().filename().string().starts_with(prefix))
      found.push_back(it->path());
  if (error) return fail("data: cannot read the folder {}", folder.string());
  if (found.empty())
    return fail("data: {} has no {}*.tshard; `tahl data pack` makes them", folder.string(), prefix);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tahl::learn
