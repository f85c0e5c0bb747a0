#include "learn/dataset.h"

#include <algorithm>
#include <bit>

#include "chess/fen.h"

namespace tahl::learn {
namespace {

std::uint64_t splitmix(std::uint64_t& state) {  // Vigna's, public domain
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

float value_for(Color side, Result result) {
  if (result == Result::WhiteWins) return side == Color::White ? 1.f : -1.f;
  if (result == Result::BlackWins) return side == Color::Black ? 1.f : -1.f;
  return 0.f;
}

bool has_been_seen(const std::vector<Key>& keys, int halfmove_clock) {
  const std::size_t last = keys.size() - 1;
  const std::size_t back = std::min(last, static_cast<std::size_t>(halfmove_clock));
  for (std::size_t d = 4; d <= back; d += 2)
    if (keys[last - d] == keys[last]) return true;
  return false;
}

Sample make_sample(const Position& position, bool repeated, const MoveList& legal, Move played,
                   Result result, nn::PolicyHead head) {
  Sample s;
  s.planes = nn::pack_rdt19(position, repeated);
  s.value = value_for(position.side_to_move(), result);
  s.moves.reserve(static_cast<std::size_t>(legal.size()));
  for (const Move m : legal) {
    const nn::PolicyTerms terms = nn::policy_terms(head, position, m);
    if (terms.count == 0) continue;
    const bool stands_for_it = m.is_promotion() && played.is_promotion() &&
                               m.from() == played.from() && m.to() == played.to() &&
                               m.promotion() == PieceType::Queen;
    if (m == played || stands_for_it) s.target = static_cast<int>(s.moves.size());
    s.moves.push_back(terms);
    if (m == played) played = Move{};  // found: the queen does not stand for it
  }
  return s;
}

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t seed) : n_(n) {
  const int bits = std::max(2, static_cast<int>(std::bit_width(n - 1)));
  mask_ = (std::uint64_t{1} << bits) - 1;
  shift_ = (bits + 1) / 2;
  for (std::uint64_t& key : keys_) key = splitmix(seed);
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  do {
    for (std::size_t round = 0; round < keys_.size(); round += 2) {
      i = (i * (keys_[round] | 1) + keys_[round + 1]) & mask_;
      i ^= i >> shift_;
    }
  } while (i >= n_);
  return i;
}

Expected<Dataset> Dataset::load(const std::filesystem::path& folder, Split split) {
  const auto files = find_shards(folder, split);
  if (!files) return tl::unexpected(files.error());
  Dataset data;
  data.name_ = std::filesystem::path(folder / "").parent_path().filename().string();
  for (const auto& file : *files) {
    auto shard = nn::Shard::open(file);
    if (!shard) return tl::unexpected(shard.error());
    const auto number = static_cast<std::uint32_t>(data.shards_.size());
    for (std::uint32_t i = 0; i < shard->size(); ++i) {
      const nn::GameView game = shard->game(i);
      if (game.result == Result::Unknown || game.moves.empty()) continue;
      data.games_.push_back({number, i});
      data.first_.push_back(data.first_.back() + game.moves.size());
    }
    const auto hash = std::bit_cast<std::array<std::uint8_t, 8>>(shard->hash());
    data.hash_ = nn::hash_bytes(hash, data.hash_);
    data.shards_.push_back(std::move(*shard));
  }
  if (data.positions() == 0)
    return fail("data: {} has no positions of the {} split", folder.string(), to_string(split));
  return data;
}

template <class F>
std::optional<Error> Dataset::replay(std::uint64_t number, std::size_t plies, F visit) const {
  const GameRef ref = games_[number];
  const nn::GameView game = shards_[ref.shard].game(ref.game);
  Position position = Position::initial();
  if (!game.start_fen.empty()) {
    const auto start = parse_fen(game.start_fen, game.chess960);
    if (!start) return Error{fmt::format("data: game {}: {}", number, start.error().message)};
    position = *start;
  }
  std::vector<Key> keys{position.key()};
  MoveList legal;
  for (std::size_t ply = 0; ply < plies; ++ply) {
    legal_moves(position, legal);
    if (game.moves[ply] >= legal.size())
      return Error{fmt::format("data: game {}: ply {} is move {} of {} legal ones", number, ply + 1,
                               game.moves[ply], legal.size())};
    const Move played = nn::move_at(legal, game.moves[ply]);
    visit(ply, position, keys, legal, played, game.result);
    position.make(played);
    keys.push_back(position.key());
  }
  return std::nullopt;
}

Expected<Sample> Dataset::sample(std::uint64_t index, nn::PolicyHead head) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), index);
  const auto game = static_cast<std::uint64_t>(after - first_.begin()) - 1;
  const std::size_t wanted = index - first_[game];
  Sample sample;
  const auto problem =
      replay(game, wanted + 1,
             [&](std::size_t ply, const Position& position, const std::vector<Key>& keys,
                 const MoveList& legal, Move played, Result result) {
               if (ply == wanted)
                 sample = make_sample(position, has_been_seen(keys, position.halfmove_clock()),
                                      legal, played, result, head);
             });
  if (problem) return tl::unexpected(*problem);
  return sample;
}

Expected<std::vector<Sample>> Dataset::game_samples(std::uint64_t game, nn::PolicyHead head) const {
  std::vector<Sample> samples;
  const auto problem = replay(
      game, first_[game + 1] - first_[game],
      [&](std::size_t, const Position& position, const std::vector<Key>& keys,
          const MoveList& legal, Move played, Result result) {
        samples.push_back(make_sample(position, has_been_seen(keys, position.halfmove_clock()),
                                      legal, played, result, head));
      });
  if (problem) return tl::unexpected(*problem);
  return samples;
}

Batch make_batch(std::span<const Sample> samples, nn::PolicyHead head) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t width = head == nn::PolicyHead::FromTo4096 ? 1 : 4;
  std::size_t most = 1;
  for (const Sample& s : samples) most = std::max(most, s.moves.size());
  const auto moves = static_cast<std::int64_t>(most);
  Batch b;
  b.planes = torch::empty({n, nn::kRdt19Planes, 8, 8});
  b.terms = torch::empty({n, moves * width}, torch::kInt64);
  b.signs = torch::empty({n, moves, width});
  b.absent = torch::empty({n, moves}, torch::kBool);
  b.target = torch::empty({n}, torch::kInt64);
  b.value = torch::empty({n});
  constexpr std::size_t kFloats = nn::kRdt19Planes * 64;
  auto* planes = b.planes.data_ptr<float>();
  auto* terms = b.terms.data_ptr<std::int64_t>();
  auto* signs = b.signs.data_ptr<float>();
  auto* absent = b.absent.data_ptr<bool>();
  // Filled by hand: torch would start a team of OpenMP threads in each of the loader's.
  std::fill_n(terms, b.terms.numel(), 0);
  std::fill_n(signs, b.signs.numel(), 0.0f);
  std::fill_n(absent, b.absent.numel(), true);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& s = samples[i];
    nn::unpack_rdt19(s.planes, {planes + i * kFloats, kFloats});
    for (std::size_t m = 0; m < s.moves.size(); ++m) {
      const std::size_t at = i * most + m;
      absent[at] = false;
      for (std::size_t t = 0; t < static_cast<std::size_t>(s.moves[m].count); ++t) {
        terms[at * static_cast<std::size_t>(width) + t] = s.moves[m].output[t];
        signs[at * static_cast<std::size_t>(width) + t] = s.moves[m].sign[t];
      }
    }
    b.target.data_ptr<std::int64_t>()[i] = s.target;
    b.value.data_ptr<float>()[i] = s.value;
  }
  return b;
}

Batch to_device(const Batch& batch, torch::Device device) {
  if (device.is_cpu()) return batch;
  const auto move = [&](const torch::Tensor& t) { return t.to(device, /*non_blocking=*/true); };
  return {move(batch.planes), move(batch.terms),  move(batch.signs),
          move(batch.absent), move(batch.target), move(batch.value)};
}

Loader::Loader(const Dataset& data, const LoaderOptions& options, std::uint64_t first)
    : data_(data), options_(options), taken_(first), started_(first) {
  for (int i = 0; i < std::max(1, options.prefetch); ++i) start();
}

void Loader::start() {
  const auto batch = static_cast<std::uint64_t>(options_.batch);
  const std::uint64_t first = std::exchange(started_, started_ + batch);
  pending_.push_back(std::async(std::launch::async, [this, first, batch]() -> Expected<Batch> {
    const std::uint64_t n = data_.positions();
    std::vector<Sample> samples;
    samples.reserve(batch);
    std::uint64_t epoch = first / n;
    Permutation order(n, options_.seed + 0x9e3779b97f4a7c15ull * epoch);
    for (std::uint64_t i = first; i < first + batch; ++i) {
      if (i / n != epoch) {
        epoch = i / n;
        order = Permutation(n, options_.seed + 0x9e3779b97f4a7c15ull * epoch);
      }
      auto sample = data_.sample(order(i % n), options_.head);
      if (!sample) return tl::unexpected(sample.error());
      samples.push_back(std::move(*sample));
    }
    return make_batch(samples, options_.head);
  }));
}

Expected<Batch> Loader::next() {
  auto batch = pending_.front().get();
  pending_.pop_front();
  start();
  if (batch) taken_ += static_cast<std::uint64_t>(batch->size());
  return batch;
}

}  // namespace tahl::learn
