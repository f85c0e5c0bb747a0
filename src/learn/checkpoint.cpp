#include "learn/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize.h>

#include <cstring>

namespace tahl::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;

template <class Point>
torch::Tensor to_tensor(const std::vector<Point>& points) {
  static_assert(sizeof(Point) % sizeof(double) == 0);
  constexpr std::int64_t width = sizeof(Point) / sizeof(double);
  torch::Tensor t = torch::empty({static_cast<std::int64_t>(points.size()), width}, torch::kDouble);
  if (!points.empty())
    std::memcpy(t.data_ptr<double>(), points.data(), points.size() * sizeof(Point));
  return t;
}

template <class Point>
std::vector<Point> from_tensor(const torch::Tensor& t) {
  constexpr std::int64_t width = sizeof(Point) / sizeof(double);
  if (t.dim() != 2 || t.size(1) != width || t.scalar_type() != torch::kDouble) return {};
  std::vector<Point> points(static_cast<std::size_t>(t.size(0)));
  if (!points.empty())
    std::memcpy(static_cast<void*>(points.data()), t.contiguous().data_ptr<double>(),
                points.size() * sizeof(Point));
  return points;
}

// Whole numbers go as their bits: hashes and seeds use all 64.
torch::Tensor to_tensor(const TrainState& s) {
  const std::uint64_t seconds = std::bit_cast<std::uint64_t>(s.seconds);
  const std::array<std::uint64_t, 7> all{s.step,      s.positions, s.slice_step, s.slice_samples,
                                         s.data_hash, s.seed,      seconds};
  torch::Tensor t = torch::empty({7}, torch::kInt64);
  std::memcpy(t.data_ptr<std::int64_t>(), all.data(), sizeof all);
  return t;
}

TrainState state_from(const torch::Tensor& t) {
  std::array<std::uint64_t, 7> all{};
  std::memcpy(all.data(), t.data_ptr<std::int64_t>(), sizeof all);
  return {all[0], all[1], all[2], all[3], all[4], all[5], std::bit_cast<double>(all[6])};
}

}  // namespace

fs::path checkpoint_path(const fs::path& run) { return run / "checkpoint.pt"; }

Expected<void> write_checkpoint(const fs::path& path, const std::string& arch,
                                nn::TorchNetwork& net, const torch::optim::AdamW& optimizer,
                                const std::vector<torch::Tensor>& mean, const TrainState& state,
                                const RunLog& log) {
  const fs::path temporary = path.string() + ".new";
  try {
    torch::serialize::OutputArchive archive, optimizer_archive;
    archive.write("version", c10::IValue(kVersion));
    archive.write("arch", c10::IValue(arch));
    torch::serialize::OutputArchive net_archive;
    net.save(net_archive);
    archive.write("net", net_archive);
    optimizer.save(optimizer_archive);
    archive.write("optimizer", optimizer_archive);
    archive.write("mean_count", c10::IValue(static_cast<std::int64_t>(mean.size())));
    for (std::size_t i = 0; i < mean.size(); ++i) archive.write(fmt::format("mean{}", i), mean[i]);
    archive.write("generator", at::detail::getDefaultCPUGenerator().get_state());
    archive.write("state", to_tensor(state));
    archive.write("train_curve", to_tensor(log.train));
    archive.write("val_curve", to_tensor(log.val));
    archive.save_to(temporary.string());
  } catch (const std::exception& error) {
    return fail("checkpoint: cannot write {}: {}", temporary.string(), tahl::quoted(error.what()));
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) return fail("checkpoint: cannot rename {}", temporary.string());
  return {};
}

Expected<void> read_checkpoint(const fs::path& path, const std::string& arch, nn::TorchNetwork& net,
                               torch::optim::AdamW& optimizer, std::vector<torch::Tensor>& mean,
                               TrainState& state, RunLog& log) {
  if (std::error_code error; !fs::is_regular_file(path, error))
    return fail("checkpoint: there is no file {}", path.string());
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(path.string());
    c10::IValue value;
    archive.read("version", value);
    if (!value.isInt() || value.toInt() != kVersion)
      return fail("checkpoint: {} is of another version", path.string());
    archive.read("arch", value);
    if (!value.isString() || value.toStringRef() != arch)
      return fail("checkpoint: {} is of {}, and the options say {}", path.string(),
                  value.isString() ? value.toStringRef() : "?", arch);
    torch::serialize::InputArchive net_archive, optimizer_archive;
    archive.read("net", net_archive);
    net.load(net_archive);
    archive.read("optimizer", optimizer_archive);
    optimizer.load(optimizer_archive);
    archive.read("mean_count", value);
    std::vector<torch::Tensor> means(static_cast<std::size_t>(value.toInt()));
    for (std::size_t i = 0; i < means.size(); ++i) archive.read(fmt::format("mean{}", i), means[i]);
    torch::Tensor generator, numbers, train, val;
    archive.read("generator", generator);
    archive.read("state", numbers);
    archive.read("train_curve", train);
    archive.read("val_curve", val);
    if (numbers.numel() != 7 || numbers.scalar_type() != torch::kInt64)
      return fail("checkpoint: {}: bad counters", path.string());
    at::Generator random = at::detail::getDefaultCPUGenerator();  // a handle
    random.set_state(generator);
    const torch::Device device = net.parameters().front().device();
    for (torch::Tensor& m : means) m = m.to(device);
    mean = std::move(means);
    state = state_from(numbers);
    log.train = from_tensor<TrainPoint>(train);
    log.val = from_tensor<ValPoint>(val);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return fail("checkpoint: cannot read {}: {}", path.string(),
                tahl::quoted(what.substr(0, what.find('\n')), 120));
  }
  return {};
}

}  // namespace tahl::learn
