#include "nn/safetensors.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace tahl::nn {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

constexpr std::uint64_t kMaxHeader = 16 << 20;  // of ours: some kilobytes
constexpr std::size_t kMaxTensors = 100'000;

constexpr std::string_view kTypeNames[] = {"F32", "F16", "BF16"};
std::string_view type_name(NumberType type) { return kTypeNames[static_cast<std::size_t>(type)]; }
std::optional<NumberType> parse_type(const std::string& name) {
  for (const NumberType type : {NumberType::F32, NumberType::F16, NumberType::BF16})
    if (type_name(type) == name) return type;
  return std::nullopt;
}

struct Entry {
  std::string name;
  NumberType type{};
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

Expected<Entry> parse_entry(const std::string& name, const nlohmann::json& json,
                            std::uint64_t data_size) {
  const std::string shown = tahl::quoted(name);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return fail("tensor {} is not an object of dtype, shape and data_offsets", shown);
  }
  Entry entry;
  entry.name = name;
  const auto& type = json["dtype"];
  if (!type.is_string()) return fail("dtype of tensor {} is not text", shown);
  const auto known = parse_type(type.get<std::string>());
  if (!known) {
    return fail("dtype of tensor {} is {}, not F32, F16 or BF16", shown,
                tahl::quoted(type.get<std::string>(), 20));
  }
  entry.type = *known;

  const auto& shape = json["shape"];
  if (!shape.is_array() || shape.size() > 8) return fail("shape of tensor {} is no list", shown);
  std::uint64_t count = 1;
  for (const auto& side : shape) {
    if (!side.is_number_unsigned()) return fail("shape of tensor {} has no whole numbers", shown);
    const auto n = side.get<std::uint64_t>();
    // The data lies in the file, so nothing may be larger than it; this also rules out overflow.
    if (n > data_size || (n != 0 && count > data_size / n)) {
      return fail("tensor {} is larger than the file", shown);
    }
    count *= n;
    entry.shape.push_back(static_cast<std::int64_t>(n));
  }

  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return fail("data_offsets of tensor {} are not two whole numbers", shown);
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  if (entry.begin > entry.end || entry.end > data_size) {
    return fail("tensor {} lies outside the file (truncated?)", shown);
  }
  const std::uint64_t width = entry.type == NumberType::F32 ? 4 : 2;
  if (entry.end - entry.begin != count * width) {
    return fail("tensor {} has {} bytes, its shape {} needs {}", shown, entry.end - entry.begin,
                shape_text(entry.shape), count * width);
  }
  return entry;
}

std::vector<float> read_numbers(const Entry& entry, std::span<const std::uint8_t> bytes) {
  if (entry.type == NumberType::F32) {
    std::vector<float> data(bytes.size() / 4);
    if (!data.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    return data;
  }
  std::vector<float> data(bytes.size() / 2);
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    data[i] = entry.type == NumberType::F16 ? float_from_half(bits) : float_from_bfloat16(bits);
  }
  return data;
}

}  // namespace

bool looks_like_safetensors(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 9 || bytes[8] != '{') return false;
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  return length <= kMaxHeader;
}

Expected<Safetensors> parse_safetensors(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 8) return fail("too short for a safetensors file");
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader) return fail("header of {} bytes, more than {}", length, kMaxHeader);
  if (length > bytes.size() - 8) return fail("header of {} bytes is truncated", length);
  const auto header_bytes = bytes.subspan(8, static_cast<std::size_t>(length));
  const auto data = bytes.subspan(8 + static_cast<std::size_t>(length));

  const auto header = nlohmann::json::parse(header_bytes.begin(), header_bytes.end(), nullptr,
                                            /*allow_exceptions=*/false);
  if (!header.is_object()) return fail("header is not a JSON object");
  if (header.size() > kMaxTensors) return fail("header has {} entries", header.size());

  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return fail("__metadata__ is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return fail("metadata {} is not text", tahl::quoted(key));
        result.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    auto entry = parse_entry(name, value, data.size());
    if (!entry) return tl::unexpected(entry.error());
    entries.push_back(std::move(*entry));
  }

  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t reached = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != reached) {
      return fail("tensor {} {}", tahl::quoted(entry.name),
                  entry.begin < reached ? "overlaps another" : "leaves a gap before it");
    }
    reached = entry.end;
  }
  if (reached != data.size()) {
    return fail("{} bytes after the last tensor", data.size() - reached);
  }
  for (const Entry& entry : entries) {
    const auto part = data.subspan(static_cast<std::size_t>(entry.begin),
                                   static_cast<std::size_t>(entry.end - entry.begin));
    result.tensors[entry.name] = {entry.shape, read_numbers(entry, part)};
  }
  return result;
}

std::vector<std::uint8_t> write_safetensors(const Safetensors& contents, NumberType type) {
  struct Part {
    const std::string* name;
    const TensorData* tensor;
    NumberType type;
    std::size_t bytes;
  };
  std::vector<Part> parts;
  for (const auto& [name, tensor] : contents.tensors) {
    const NumberType own = tensor.shape.size() < 2 ? NumberType::F32 : type;
    const std::size_t width = own == NumberType::F32 ? 4 : 2;
    parts.push_back({&name, &tensor, own, tensor.data.size() * width});
  }
  std::stable_partition(parts.begin(), parts.end(),  // so that each is aligned
                        [](const Part& part) { return part.type == NumberType::F32; });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!contents.metadata.empty()) header["__metadata__"] = contents.metadata;
  std::uint64_t offset = 0;
  for (const Part& part : parts) {
    const std::uint64_t end = offset + part.bytes;
    header[*part.name] = {{"dtype", type_name(part.type)},
                          {"shape", part.tensor->shape},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned

  const std::uint64_t length = text.size();
  std::vector<std::uint8_t> bytes(8 + text.size() + static_cast<std::size_t>(offset));
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, text.data(), text.size());
  std::uint8_t* out = bytes.data() + 8 + text.size();
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    if (part.type == NumberType::F32) {
      std::memcpy(out, part.tensor->data.data(), part.bytes);
      out += part.bytes;
      continue;
    }
    for (const float x : part.tensor->data) {
      const std::uint16_t bits =
          part.type == NumberType::F16 ? half_from_float(x) : bfloat16_from_float(x);
      std::memcpy(out, &bits, 2);
      out += 2;
    }
  }
  return bytes;
}

std::string safetensors_types(std::span<const std::uint8_t> bytes) {
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = bytes.subspan(8, static_cast<std::size_t>(length));
  const auto json = nlohmann::json::parse(header.begin(), header.end(), nullptr, false);
  std::set<std::string> types;
  for (const auto& [name, value] : json.items())
    if (name != "__metadata__") types.insert(value["dtype"].get<std::string>());
  std::string text;
  for (std::string type : types) {
    for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    text += (text.empty() ? "" : " ") + type;
  }
  return text;
}

}  // namespace tahl::nn
