#include "nn/lc0_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tahl::nn {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kMaxUnpacked = std::size_t{1} << 30;
constexpr int kInputPlanes = 112;
constexpr float kEpsilon = 1e-5f;  // lc0 adds it to the variances, as PyTorch does

// gzip. Trained weights hardly pack at all (Maia's: 8 in 9 bytes stay), so what unpacks to many
// times its size is no net.

Expected<std::vector<std::uint8_t>> unpack(Bytes packed) {
  const std::size_t limit = std::min(kMaxUnpacked, (std::size_t{16} << 20) + 16 * packed.size());
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return fail("zlib does not start");
  std::vector<std::uint8_t> result;
  int code = Z_OK;
  // zlib counts in 32 bits, so give it the file in parts.
  std::size_t given = 0;
  while (code == Z_OK) {
    if (stream.avail_in == 0) {
      const std::size_t part = std::min<std::size_t>(packed.size() - given, 1 << 20);
      stream.next_in = const_cast<Bytef*>(packed.data() + given);
      stream.avail_in = static_cast<uInt>(part);
      given += part;
    }
    const std::size_t had = result.size();
    if (had == limit) {
      inflateEnd(&stream);
      return fail("gzip: unpacks to more than {} bytes", limit);
    }
    const std::size_t room = std::min(limit - had, std::clamp<std::size_t>(had, 1 << 16, 1 << 26));
    result.resize(had + room);
    stream.next_out = result.data() + had;
    stream.avail_out = static_cast<uInt>(room);
    code = inflate(&stream, Z_NO_FLUSH);
    result.resize(had + room - stream.avail_out);
    if (code == Z_BUF_ERROR) break;  // nothing left to give
  }
  const std::size_t rest = packed.size() - given + stream.avail_in;
  inflateEnd(&stream);
  if (code == Z_BUF_ERROR) return fail("gzip: ends early (truncated?)");
  if (code != Z_STREAM_END) return fail("gzip: damaged");
  if (rest != 0) return fail("gzip: {} bytes after the end", rest);
  return result;
}

// Protobuf. A message is a list of numbered fields; those that we do not know are passed over.
// Nothing is copied: messages and strings inside a message are parts of the file.

struct Field {
  int number = 0;
  std::uint64_t value = 0;  // of whole numbers and enumerations; the bits of 32- and 64-bit ones
  Bytes bytes;              // of strings and messages

  int small() const { return static_cast<int>(std::min<std::uint64_t>(value, 1'000'000'000)); }
  float number32() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }
};

// Calls take(field) for each field until it returns false. False if the message is damaged.
template <class Take>
bool for_each_field(Bytes message, Take take) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(message.data(), static_cast<int>(message.size()));
  while (const std::uint32_t tag = in.ReadTag()) {
    Field field;
    field.number = WireFormatLite::GetTagFieldNumber(tag);
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        if (!in.ReadVarint64(&field.value)) return false;
        break;
      case WireFormatLite::WIRETYPE_FIXED64:
        if (!in.ReadLittleEndian64(&field.value)) return false;
        break;
      case WireFormatLite::WIRETYPE_FIXED32: {
        std::uint32_t bits;
        if (!in.ReadLittleEndian32(&bits)) return false;
        field.value = bits;
        break;
      }
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        std::uint32_t length;
        if (!in.ReadVarint32(&length)) return false;
        const auto begin = static_cast<std::size_t>(in.CurrentPosition());
        if (length > message.size() - begin) return false;
        field.bytes = message.subspan(begin, length);
        if (!in.Skip(static_cast<int>(length))) return false;
        break;
      }
      default:  // groups, which no version of the format has had
        return false;
    }
    if (!take(field)) return true;
  }
  return in.ConsumedEntireMessage();
}

// The last of the message fields of each number below N, as an array.
template <std::size_t N>
bool collect(Bytes message, std::array<std::optional<Bytes>, N>& fields) {
  return for_each_field(message, [&](const Field& field) {
    if (field.number < static_cast<int>(N))
      fields[static_cast<std::size_t>(field.number)] = field.bytes;
    return true;
  });
}

// The messages. Numbers of fields and enumerations are the format's.

struct Format {
  // Without a word about them, a net is of the first kind that lc0 had.
  int input = 1, network = 1, policy = 1, value = 1, activation = 0;
};
enum Network { kClassical = 1, kSe, kClassicalWithHeads, kSeWithHeads, kOnnx };
enum Policy { kPolicyClassical = 1, kPolicyConvolution, kPolicyAttention };
enum Value { kValueClassical = 1, kValueWdl };

bool read_format(Bytes message, Format& format) {
  bool is_whole = true;
  is_whole &= for_each_field(message, [&](const Field& outer) {
    if (outer.number != 2) return true;
    is_whole &= for_each_field(outer.bytes, [&](const Field& field) {
      if (field.number == 1) format.input = field.small();
      if (field.number == 3) format.network = field.small();
      if (field.number == 4) format.policy = field.small();
      if (field.number == 5) format.value = field.small();
      if (field.number == 7) format.activation = field.small();
      return true;
    });
    return true;
  });
  return is_whole;
}

// Its numbers. A missing layer has none.
Expected<std::vector<float>> read_layer(std::optional<Bytes> message, const std::string& name) {
  float low = 0, high = 0;
  int encoding = 1;
  Bytes params;
  const bool whole = !message || for_each_field(*message, [&](const Field& field) {
    if (field.number == 1) low = field.number32();
    if (field.number == 2) high = field.number32();
    if (field.number == 3) params = field.bytes;
    if (field.number == 4) encoding = field.small();
    return true;
  });
  if (!whole) return fail("{} is damaged", name);
  if (encoding < 1 || encoding > 4)
    return fail("{} is encoded as {}, unknown here", name, encoding);
  const std::size_t width = encoding == 4 ? 4 : 2;
  if (params.size() % width != 0) return fail("{} has {} bytes", name, params.size());
  std::vector<float> numbers(params.size() / width);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &params[i * width], 2);
    const float theta = static_cast<float>(bits) / 65535.f;
    switch (encoding) {
      case 1:
        numbers[i] = low * (1 - theta) + high * theta;
        break;
      case 2:
        numbers[i] = float_from_half(bits);
        break;
      case 3:
        numbers[i] = float_from_bfloat16(bits);
        break;
      default:
        std::memcpy(&numbers[i], &params[i * width], 4);
    }
  }
  return numbers;
}

// The Weights message: layers by field number, and the blocks of the tower.
constexpr std::size_t kWeightFields = 46;
struct Weights {
  std::array<std::optional<Bytes>, kWeightFields> fields;
  std::vector<Bytes> blocks;
};

// Puts tensors into a net. The first error stays, and what follows does nothing.
class Reader {
 public:
  explicit Reader(NetFile& net) : net_(net) {}

  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

  std::vector<float> layer(std::optional<Bytes> message, const std::string& name) {
    if (failed()) return {};
    auto numbers = read_layer(message, name);
    if (numbers) return std::move(*numbers);
    error_ = numbers.error();
    return {};
  }

  // NAME.weight and .bias of the ConvBlock message, [out][in][kernel][kernel]; how many come out is
  // for the numbers to say. Returns that, or 0.
  int conv(std::optional<Bytes> message, const std::string& name, int in, int kernel) {
    if (failed()) return 0;
    std::array<std::optional<Bytes>, 7> fields;
    if (!message) return complain("{} is missing", name);
    if (!collect(*message, fields)) return complain("{} is damaged", name);
    std::vector<float> weights = layer(fields[1], name);
    std::vector<float> bias = layer(fields[2], name + " biases");
    std::vector<float> means = layer(fields[3], name + " means");
    std::vector<float> variances = layer(fields[4], name + " variances");
    std::vector<float> gammas = layer(fields[5], name + " gammas");
    std::vector<float> betas = layer(fields[6], name + " betas");
    if (failed()) return 0;
    const auto row = static_cast<std::size_t>(in * kernel * kernel);
    const std::size_t out = weights.size() / row;
    if (out == 0 || weights.size() % row != 0 || out > 1'000'000)
      return complain("{} has {} weights, for {} channels", name, weights.size(), in);
    if (bias.empty()) bias.assign(out, 0);
    if (bias.size() != out) return complain("{} has {} biases, not {}", name, bias.size(), out);
    if (!means.empty()) {
      if (gammas.empty()) gammas.assign(out, 1);  // the first nets had neither
      if (betas.empty()) betas.assign(out, 0);
      for (const auto* part : {&means, &variances, &gammas, &betas})
        if (part->size() != out)
          return complain("{} has a norm of {} channels, not {}", name, part->size(), out);
      for (std::size_t o = 0; o < out; ++o) {
        const float gain = gammas[o] / std::sqrt(variances[o] + kEpsilon);
        for (std::size_t i = 0; i < row; ++i) weights[o * row + i] *= gain;
        bias[o] = (bias[o] - means[o]) * gain + betas[o];
      }
    }
    put(name + ".weight", {static_cast<std::int64_t>(out), in, kernel, kernel}, std::move(weights));
    put(name + ".bias", {static_cast<std::int64_t>(out)}, std::move(bias));
    return static_cast<int>(out);
  }

  // NAME.weight and .bias of two layers, [out][in]; `on_squares` makes it a 1x1 convolution, the
  // same thing done at every square. Returns how many come out, or 0.
  int linear(std::optional<Bytes> weights, std::optional<Bytes> biases, const std::string& name,
             int in, bool on_squares = false) {
    std::vector<float> numbers = layer(weights, name);
    std::vector<float> bias = layer(biases, name + " biases");
    if (failed()) return 0;
    const std::size_t out = bias.size();
    if (out == 0 || out > 1'000'000 || numbers.size() != out * static_cast<std::size_t>(in))
      return complain("{} has {} weights and {} biases, for {} inputs", name, numbers.size(), out,
                      in);
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(out), in};
    if (on_squares) shape.insert(shape.end(), {1, 1});
    put(name + ".weight", std::move(shape), std::move(numbers));
    put(name + ".bias", {static_cast<std::int64_t>(out)}, std::move(bias));
    return static_cast<int>(out);
  }

  void put(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> numbers) {
    net_.tensors[name] = {std::move(shape), std::move(numbers)};
  }

  template <class... Args>
  int complain(fmt::format_string<Args...> format, Args&&... args) {
    if (!failed()) error_ = Error{fmt::format(format, std::forward<Args>(args)...)};
    return 0;
  }

 private:
  NetFile& net_;
  std::optional<Error> error_;
};

void read_block(Reader& reader, Bytes message, const std::string& name, ArchConfig& arch,
                bool first) {
  std::array<std::optional<Bytes>, 4> fields;
  if (!collect(message, fields)) {
    reader.complain("{} is damaged", name);
    return;
  }
  for (const int half : {1, 2}) {
    const std::string conv = fmt::format("{}.conv{}", name, half);
    const int out = reader.conv(fields[static_cast<std::size_t>(half)], conv, arch.channels, 3);
    if (out != arch.channels)
      reader.complain("{} has {} channels, not {}", conv, out, arch.channels);
  }
  const bool se = fields[3].has_value();
  if (first) arch.se = se;
  if (se != arch.se) reader.complain("only some blocks have squeeze-and-excitation");
  if (!se || reader.failed()) return;
  std::array<std::optional<Bytes>, 5> parts;
  if (!collect(*fields[3], parts)) {
    reader.complain("{}.se is damaged", name);
    return;
  }
  const int hidden = reader.linear(parts[1], parts[2], name + ".se.fc1", arch.channels);
  if (first) arch.se_width = hidden;
  if (hidden != arch.se_width)
    reader.complain("{}.se is {} wide, not {}", name, hidden, arch.se_width);
  const int out = reader.linear(parts[3], parts[4], name + ".se.fc2", hidden);
  if (out != 2 * arch.channels)
    reader.complain("{}.se has {} outputs, not {}", name, out, 2 * arch.channels);
}

// The padding planes that some files have after the 73 are cut off.
void read_planes73(Reader& reader, NetFile& net, std::optional<Bytes> message, int channels) {
  const int planes = reader.conv(message, "policy_planes", channels, 3);
  if (reader.failed()) return;
  if (planes < 73) {
    reader.complain("the policy has {} planes, not 73 or more", planes);
    return;
  }
  for (const char* part : {"policy_planes.weight", "policy_planes.bias"}) {
    TensorData& tensor = net.tensors[part];
    tensor.data.resize(tensor.data.size() / static_cast<std::size_t>(planes) * 73);
    tensor.shape[0] = 73;
  }
}

void read_weights(Reader& reader, NetFile& net, const Weights& weights, const Format& format) {
  const auto& f = weights.fields;
  ArchConfig& arch = net.arch;
  arch.channels = reader.conv(f[1], "stem", kInputPlanes, 3);
  arch.blocks = static_cast<int>(weights.blocks.size());
  for (std::size_t i = 0; i < weights.blocks.size() && !reader.failed(); ++i)
    read_block(reader, weights.blocks[i], fmt::format("tower.{}", i), arch, i == 0);
  if (reader.failed()) return;

  switch (format.policy) {
    case kPolicyClassical:
      arch.policy_head = "moves1858";
      arch.policy_channels = reader.conv(f[3], "policy_conv", arch.channels, 1);
      reader.linear(f[4], f[5], "policy_fc", arch.policy_channels * 64);
      break;
    case kPolicyConvolution:
      arch.policy_head = "planes73";
      reader.conv(f[11], "policy_conv", arch.channels, 3);
      read_planes73(reader, net, f[3], arch.channels);
      break;
    case kPolicyAttention: {
      arch.policy_head = "attention4288";
      arch.policy_channels = reader.linear(f[4], f[5], "policy_conv", arch.channels, true);
      arch.policy_width = reader.linear(f[17], f[18], "policy_queries", arch.policy_channels, true);
      reader.linear(f[19], f[20], "policy_keys", arch.policy_channels, true);
      std::vector<float> promotions = reader.layer(f[22], "policy_promotions");
      if (promotions.size() != 4 * static_cast<std::size_t>(arch.policy_width))
        reader.complain("policy_promotions has {} weights, not {}", promotions.size(),
                        4 * arch.policy_width);
      reader.put("policy_promotions.weight", {4, arch.policy_width}, std::move(promotions));
      break;
    }
    default:
      reader.complain("its policy is of kind {}, unknown here", format.policy);
  }
  arch.wdl = format.value == kValueWdl;
  if (format.value != kValueClassical && format.value != kValueWdl)
    reader.complain("its value is of kind {}, unknown here", format.value);
  arch.value_channels = reader.conv(f[6], "value_conv", arch.channels, 1);
  arch.value_hidden = reader.linear(f[7], f[8], "value_fc1", arch.value_channels * 64);
  reader.linear(f[9], f[10], "value_fc2", arch.value_hidden);
}

// Why the net cannot be run here, or nothing.
std::string unsupported(const Format& format, const Weights& weights) {
  if (format.network == kOnnx) return "is an ONNX model, which Tahl does not run";
  if (format.network > kOnnx || weights.fields[27] || weights.fields[25])
    return "is a transformer (attention body), which Tahl does not run";
  if (weights.fields[21]) return "has transformer layers in its policy, which Tahl does not run";
  if (weights.fields[44] || weights.fields[45]) return "has several heads, which Tahl does not run";
  if (format.activation != 0 && format.activation != 1)
    return fmt::format("has the activation {}, unknown here", format.activation);
  return {};
}

Expected<NetFile> parse_message(Bytes bytes) {
  NetFile net;
  Format format;
  Weights weights;
  std::optional<Bytes> weights_bytes;
  bool is_whole = true, is_onnx = false;
  const bool readable = for_each_field(bytes, [&](const Field& field) {
    switch (field.number) {
      case 2:
        net.metadata["license"] = std::string(field.bytes.begin(), field.bytes.end());
        break;
      case 4:
        is_whole = is_whole && read_format(field.bytes, format);
        break;
      case 5:
        for_each_field(field.bytes, [&](const Field& inner) {
          if (inner.number == 1) net.metadata["training_steps"] = std::to_string(inner.value);
          return inner.number != 1;
        });
        break;
      case 10:
        weights_bytes = field.bytes;
        break;
      case 11:
        is_onnx = true;
        break;
    }
    return true;
  });
  if (!readable || !is_whole) return fail("lc0: damaged (truncated?)");
  if (is_onnx) format.network = kOnnx;
  if (format.network == kClassical || format.network == kSe)
    format.policy = format.value = 1;  // kinds had not been invented
  if (weights_bytes) {
    constexpr std::size_t kMaxBlocks = 1000;
    const bool whole = for_each_field(*weights_bytes, [&](const Field& field) {
      if (field.number == 2)
        weights.blocks.push_back(field.bytes);
      else if (field.number < static_cast<int>(kWeightFields))
        weights.fields[static_cast<std::size_t>(field.number)] = field.bytes;
      return weights.blocks.size() <= kMaxBlocks;
    });
    if (!whole) return fail("lc0: damaged (truncated?)");
    if (weights.blocks.size() > kMaxBlocks) return fail("lc0: more than {} blocks", kMaxBlocks);
  }
  if (const std::string why = unsupported(format, weights); !why.empty()) return fail("{}", why);
  if (!weights_bytes) return fail("lc0: has no weights");

  constexpr std::array<const char*, 5> kEncodings{
      "lc0-112", "lc0-112-castling", "lc0-112-canonical", "lc0-112-hectoplies", "lc0-112-v2"};
  if (format.input < 1 || format.input > static_cast<int>(kEncodings.size()))
    return fail("lc0: its input is of kind {}, unknown here", format.input);
  net.encoding = kEncodings[static_cast<std::size_t>(format.input - 1)];
  net.arch = {.family = "lc0", .input_planes = kInputPlanes};
  if (format.activation == 1) net.arch.activation = "mish";
  Reader reader(net);
  read_weights(reader, net, weights, format);
  if (reader.failed()) return fail("lc0: {}", reader.error()->message);
  if (auto ok = validate(net.arch); !ok) return tl::unexpected(ok.error());
  return net;
}

bool is_gzip(Bytes bytes) { return bytes.size() >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

// The message begins with its field 1, a fixed number.
bool is_message(Bytes bytes) {
  constexpr std::uint8_t kMagic[] = {0x0d, 0xc0, 0x01, 0x00, 0x00};
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

}  // namespace

bool looks_like_lc0(Bytes bytes) { return is_gzip(bytes) || is_message(bytes); }

Expected<NetFile> parse_lc0(Bytes bytes) {
  if (!is_gzip(bytes)) {
    if (bytes.size() > kMaxUnpacked)
      return fail("lc0: {} bytes, more than {}", bytes.size(), kMaxUnpacked);
    return parse_message(bytes);
  }
  const auto message = unpack(bytes);
  if (!message) return tl::unexpected(message.error());
  if (!is_message(*message)) return fail("gzip, but no lc0 net in it");
  return parse_message(*message);
}

}  // namespace tahl::nn
