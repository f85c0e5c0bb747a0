#include "app/net_compare.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "chess/byte_source.h"
#include "chess/fen.h"
#include "chess/pgn.h"
#include "nn/sample.h"

namespace tahl::app {
namespace {

namespace fs = std::filesystem;

// Draws `count` of a stream whose length no one knows, each as likely as any other (Vitter 1985,
// algorithm R).
class Draw {
 public:
  Draw(std::size_t count, std::uint64_t seed) : count_(count), lots_(seed) {}
  // The place among those drawn that the next one takes, if any.
  std::optional<std::size_t> place_of_next() {
    const std::uint64_t seen = seen_++;
    if (seen < count_) return static_cast<std::size_t>(seen);
    const std::uint64_t lot = lots_() % (seen + 1);  // the bias of 2^-40 at a trillion is nothing
    return lot < count_ ? std::optional(static_cast<std::size_t>(lot)) : std::nullopt;
  }
  std::uint64_t seen() const { return seen_; }

 private:
  std::size_t count_;
  std::uint64_t seen_ = 0;
  std::mt19937_64 lots_;
};

template <class T>
void put(std::vector<T>& drawn, std::size_t place, T&& one) {
  if (place == drawn.size()) {
    drawn.push_back(std::forward<T>(one));
  } else {
    drawn[place] = std::forward<T>(one);
  }
}

void play_prefix(Game& game, const std::vector<Move>& moves, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (moves[i]) {
      game.play(moves[i]);
    } else {
      game.play_null();
    }
  }
}

using Progress = std::function<void(std::uint64_t)>;

Expected<std::vector<SamplePosition>> from_pgn(const fs::path& path, const SampleOptions& options,
                                               const std::stop_token& stop,
                                               const Progress& progress) {
  PgnOptions pgn;
  pgn.check_variations = false;
  auto reader = PgnReader::open(path, std::move(pgn));
  if (!reader) return tl::unexpected(reader.error());
  std::vector<SamplePosition> drawn;
  Draw draw(options.count, options.seed);
  while (const PgnGame* game = reader->next()) {
    if (stop.stop_requested()) return drawn;
    for (std::size_t i = 0; i < game->moves.size(); ++i) {
      if (!game->moves[i]) continue;
      const auto place = draw.place_of_next();
      if (!place) continue;
      SamplePosition one{Game(game->start, game->chess960), game->moves[i]};
      play_prefix(one.game, game->moves, i);
      put(drawn, *place, std::move(one));
    }
    if (progress) progress(draw.seen());
  }
  if (reader->error()) return tl::unexpected(*reader->error());
  return drawn;
}

Expected<std::vector<SamplePosition>> from_shards(const fs::path& path,
                                                  const SampleOptions& options,
                                                  const std::stop_token& stop,
                                                  const Progress& progress) {
  const auto files = learn::find_shards(path, options.split);
  if (!files) return tl::unexpected(files.error());
  std::vector<SamplePosition> drawn;
  Draw draw(options.count, options.seed);
  for (const fs::path& file : *files) {
    const auto shard = nn::Shard::open(file);
    if (!shard) return tl::unexpected(shard.error());
    for (std::size_t g = 0; g < shard->size(); ++g) {
      if (stop.stop_requested()) return drawn;
      const nn::GameView view = shard->game(g);
      std::optional<Game> whole;  // played only if a position of it is drawn
      for (std::size_t i = 0; i < view.moves.size(); ++i) {
        const auto place = draw.place_of_next();
        if (!place) continue;
        if (!whole) {
          auto game = nn::unpack_game(view);
          if (!game) return fail("{}: game {}: {}", file.string(), g, game.error().message);
          whole = *std::move(game);
        }
        SamplePosition one{Game(whole->start(), whole->is_chess960()), whole->moves()[i]};
        play_prefix(one.game, whole->moves(), i);
        put(drawn, *place, std::move(one));
      }
      if (progress && g % 256 == 0) progress(draw.seen());
    }
  }
  return drawn;
}

// The fields of an EPD or FEN line: four, and two counters if they are numbers.
std::string fen_in(const std::string& line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (words.size() < 6) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  const auto is_number = [](const std::string& word) {
    return word.find_first_not_of("0123456789") == std::string::npos;
  };
  if (words.size() < 6 || !is_number(words[4]) || !is_number(words[5]))
    words.resize(std::min<std::size_t>(words.size(), 4));
  return fmt::format("{}", fmt::join(words, " "));
}

Expected<std::vector<SamplePosition>> from_list(const fs::path& path, const SampleOptions& options,
                                                const std::stop_token& stop,
                                                const Progress& progress) {
  auto source = open_bytes(path);
  if (!source) return tl::unexpected(source.error());
  std::vector<SamplePosition> drawn;
  Draw draw(options.count, options.seed);
  std::size_t number = 0;
  const auto take_line = [&](const std::string& line) -> std::optional<Error> {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') return std::nullopt;
    const auto position = parse_fen(fen_in(line));
    if (!position)
      return Error{fmt::format("{}: line {}: {}", path.string(), number, position.error().message)};
    if (legal_moves(*position).empty()) return std::nullopt;
    if (const auto place = draw.place_of_next())
      put(drawn, *place, SamplePosition{Game(*position), std::nullopt});
    return std::nullopt;
  };
  constexpr std::size_t kLongestLine = 1 << 16;
  std::string line;
  std::vector<char> part(1 << 16);
  while (!stop.stop_requested()) {
    const auto n = (*source)->read(part.data(), part.size());
    if (!n) return tl::unexpected(n.error());
    for (std::size_t i = 0; i < *n; ++i) {
      if (part[i] != '\n') {
        line += part[i];
        if (line.size() > kLongestLine)
          return fail("{}: line {}: longer than {} bytes: no list of positions", path.string(),
                      number + 1, kLongestLine);
        continue;
      }
      if (const auto problem = take_line(line)) return tl::unexpected(*problem);
      line.clear();
    }
    if (progress) progress(draw.seen());
    if (*n > 0) continue;
    if (const auto problem = take_line(line)) return tl::unexpected(*problem);
    break;
  }
  return drawn;
}

int top_move(const std::vector<float>& p) {
  return static_cast<int>(std::max_element(p.begin(), p.end()) - p.begin());
}

}  // namespace

Expected<std::vector<SamplePosition>> sample_positions(const fs::path& path,
                                                       const SampleOptions& options,
                                                       std::stop_token stop,
                                                       const Progress& progress) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return fail("{}: there is no such file or folder", path.string());
  const std::string name = path.filename().string();
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  auto drawn = fs::is_directory(status) || ends(".tshard")
                   ? from_shards(path, options, stop, progress)
               : ends(".pgn") || ends(".pgn.zst") ? from_pgn(path, options, stop, progress)
                                                  : from_list(path, options, stop, progress);
  if (drawn && drawn->empty() && !stop.stop_requested())
    return fail("{}: there are no positions in it", path.string());
  return drawn;
}

void Calibration::add(double p, bool happened) {
  const auto bin = static_cast<std::size_t>(std::clamp(p, 0., 1.) * kBins);
  Bin& b = bins_[std::min(bin, kBins - 1)];
  ++b.count;
  b.happened += happened;
  b.p += p;
}

std::uint64_t Calibration::count() const {
  std::uint64_t n = 0;
  for (const Bin& b : bins_) n += b.count;
  return n;
}

double Calibration::expected_error() const {
  double sum = 0;
  for (const Bin& b : bins_) sum += std::abs(b.p - static_cast<double>(b.happened));
  return count() == 0 ? 0 : sum / static_cast<double>(count());
}

double Calibration::mean_p() const {
  double sum = 0;
  for (const Bin& b : bins_) sum += b.p;
  return count() == 0 ? 0 : sum / static_cast<double>(count());
}

double Calibration::share() const {
  std::uint64_t n = 0;
  for (const Bin& b : bins_) n += b.happened;
  return count() == 0 ? 0 : static_cast<double>(n) / static_cast<double>(count());
}

void Agreement::add(const nn::Evaluation& a, const nn::Evaluation& b, std::optional<int> played) {
  const std::vector<float> p = nn::softmax(a.logits), q = nn::softmax(b.logits);
  const int top_a = top_move(p), top_b = top_move(q);
  if (top_a == top_b) ++same_top1_;
  if (played) {
    calibration_a_.add(p[static_cast<std::size_t>(top_a)], *played == top_a);
    calibration_b_.add(q[static_cast<std::size_t>(top_b)], *played == top_b);
  }
  std::vector<float> logits_a, logits_b;
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    if (!std::isfinite(a.logits[i]) || !std::isfinite(b.logits[i])) {
      ++moves_left_out_;
      continue;
    }
    logits_a.push_back(a.logits[i]);
    logits_b.push_back(b.logits[i]);
  }
  // From logits rather than from p and q, whose smallest may be zero.
  const auto log_sum = [](const std::vector<float>& logits) {
    if (logits.empty()) return 0.;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(x - largest);
    return largest + std::log(sum);
  };
  const double sum_a = log_sum(logits_a), sum_b = log_sum(logits_b);
  double kl = 0;
  for (std::size_t i = 0; i < logits_a.size(); ++i) {
    const double log_p = logits_a[i] - sum_a;
    kl += std::exp(log_p) * (log_p - (logits_b[i] - sum_b));
  }
  kl = std::max(kl, 0.);  // rounding
  kl_ += kl;
  largest_kl_ = std::max(largest_kl_, kl);
  const double difference = std::abs(double{a.value} - double{b.value});
  value_squares_ += difference * difference;
  if (difference > largest_value_difference_) {
    largest_value_difference_ = difference;
    largest_value_position_ = positions_;
  }
  ++positions_;
}

double Agreement::value_rmse() const { return std::sqrt(mean(value_squares_)); }

Agreement compare_nets(nn::Evaluator& a, nn::Evaluator& b,
                       const std::vector<SamplePosition>& positions, std::stop_token stop,
                       const std::function<void(std::size_t)>& progress) {
  constexpr std::size_t kBatch = 32;
  Agreement agreement;
  for (std::size_t begin = 0; begin < positions.size() && !stop.stop_requested(); begin += kBatch) {
    const std::size_t end = std::min(begin + kBatch, positions.size());
    std::vector<MoveList> legal;
    for (std::size_t i = begin; i < end; ++i)
      legal.push_back(legal_moves(positions[i].game.position()));
    std::vector<nn::EvalRequest> batch;
    for (std::size_t i = begin; i < end; ++i)
      batch.push_back({&positions[i].game, &legal[i - begin]});
    const auto of_a = a.evaluate(batch), of_b = b.evaluate(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::optional<Move> move = positions[begin + i].played;
      std::optional<int> played;
      for (int k = 0; move && k < legal[i].size(); ++k)
        if (legal[i][k] == *move) played = k;
      agreement.add(of_a[i], of_b[i], played);
    }
    if (progress) progress(end);
  }
  return agreement;
}

}  // namespace tahl::app
