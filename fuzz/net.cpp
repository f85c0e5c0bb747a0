// Arbitrary bytes as a network's file, in each of the three formats that are read: a message is one
// line, and a net that was read fits its architecture and comes back from our own format the same.
//
// Two formats hide their contents from a fuzzer behind checksums, so bytes that begin like a pickle
// are also put into the zip archive that torch.save would make, and lc0's message is read without
// its gzip too. The nets of corpus/net have one channel; tests/nn/lc0_testing.h wrote them.

#include "fuzz/properties.h"
#include "nn/net_file.h"
#include "tests/nn/net_testing.h"

namespace {

using namespace tahl;
using namespace tahl::fuzz;
using Bytes = std::vector<std::uint8_t>;

void check_net(const nn::NetFile& net) {
  check(nn::validate(net.arch).has_value(), "what is read makes sense", nn::to_json(net.arch));
  check(nn::check_tensors(net).has_value(), "the tensors are those of the architecture",
        nn::to_json(net.arch));
  const Bytes bytes = nn::to_bytes(net);
  const auto again = nn::read_net(bytes, "again");
  if (!again) check(false, "a net that was written can be read", again.error().message);
  check(again->arch == net.arch, "files keep the architecture", nn::to_json(net.arch));
  check(nn::to_bytes(*again) == bytes, "files keep the net");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto net = nn::read_net(std::span(data, size), "net");
  if (net) {
    check_net(*net);
  } else {
    check_message(net.error().message);
  }
  if (size >= 2 && data[0] == 0x80 && data[1] == 2) {
    std::map<std::string, Bytes> entries{{"net/data.pkl", Bytes(data, data + size)}};
    for (int i = 0; i < 10; ++i)
      entries[fmt::format("net/data/{}", i)] = Bytes(static_cast<std::size_t>(4 << i));
    const auto checkpoint = nn::read_net(nn::testing::make_zip(entries), "net");
    if (checkpoint) {
      check_net(*checkpoint);
    } else {
      check_message(checkpoint.error().message);
    }
  }
  return 0;
}
