#include "nn/pickle.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tahl::nn {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

constexpr std::uint64_t kMaxPickle = 64 << 20;
constexpr std::size_t kMaxObjects = 1'000'000;  // about 100 MB of them

// --- The zip -----------------------------------------------------------------------------------

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

// torch.save stores entries as they are. Refusing compressed ones keeps every entry no larger than
// the file, so there are no bombs.
class Archive {
 public:
  static Expected<Archive> open(std::span<const std::uint8_t> bytes) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    zip_t* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
    if (archive == nullptr) {
      if (source != nullptr) zip_source_free(source);
      std::string reason = zip_error_strerror(&error);
      zip_error_fini(&error);
      return fail("not a whole zip archive: {}", reason);
    }
    zip_error_fini(&error);
    return Archive(archive, bytes.size());
  }

  // "NAME/" of the entry "NAME/data.pkl"; torch names the folder after the file it wrote.
  Expected<std::string> folder() const {
    const zip_int64_t entries = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < entries; ++i) {
      const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
      if (name == nullptr) continue;
      const std::string_view text = name;
      constexpr std::string_view kEnd = "/data.pkl";
      if (text.ends_with(kEnd)) return std::string(text.substr(0, text.size() - kEnd.size() + 1));
    }
    return fail("a zip archive without data.pkl: not a torch checkpoint");
  }

  bool contains(const std::string& name) const {
    return zip_name_locate(archive_.get(), name.c_str(), ZIP_FL_ENC_RAW) >= 0;
  }

  Expected<std::vector<std::uint8_t>> read(const std::string& name, std::uint64_t limit) const {
    const std::string shown = tahl::quoted(name);
    const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), ZIP_FL_ENC_RAW);
    if (index < 0) return fail("entry {} is missing", shown);
    zip_stat_t stat;
    if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(index), 0, &stat) != 0 ||
        (stat.valid & ZIP_STAT_SIZE) == 0 || (stat.valid & ZIP_STAT_COMP_METHOD) == 0) {
      return fail("entry {} cannot be read", shown);
    }
    if (stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE) {
      return fail("entry {} is compressed, which torch.save does not do", shown);
    }
    if (stat.size > size_ || stat.size > limit) {
      return fail("entry {} claims {} bytes", shown, stat.size);
    }
    std::unique_ptr<zip_file_t, ZipCloser> file(
        zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0));
    if (!file) return fail("entry {} cannot be read", shown);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(stat.size));
    // One byte more than there is, so that libzip reaches the end and checks the CRC.
    std::uint8_t beyond;
    if (zip_fread(file.get(), bytes.data(), bytes.size()) !=
            static_cast<zip_int64_t>(bytes.size()) ||
        zip_fread(file.get(), &beyond, 1) != 0) {
      return fail("entry {} is damaged", shown);
    }
    return bytes;
  }

 private:
  Archive(zip_t* archive, std::size_t size) : archive_(archive), size_(size) {}

  std::unique_ptr<zip_t, ZipCloser> archive_;
  std::size_t size_;
};

// --- The pickle --------------------------------------------------------------------------------

using Id = std::uint32_t;

enum class Kind : std::uint8_t {
  None,
  Bool,
  Int,
  Float,
  Text,
  Tuple,
  List,
  Dict,     // items: key, value, key, value...
  Global,   // text: module and name, "collections OrderedDict"
  Storage,  // items: type (Global), key (Text); integer: elements
  Tensor,   // items: storage, size (Tuple), stride (Tuple); integer: offset
};

struct Object {
  Kind kind = Kind::None;
  std::int64_t integer = 0;
  std::string_view text;  // points into the pickle
  std::vector<Id> items;
};

// A global is one of these or the file is refused.
constexpr std::string_view kOrderedDict = "collections OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils _rebuild_parameter";
bool is_storage_name(std::string_view global) {
  return global.starts_with("torch ") && global.ends_with("Storage") &&
         global.find_first_of("._", 6) == std::string_view::npos;
}

class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {
    objects_.emplace_back();  // 0: None
  }

  // The object the pickle describes.
  Expected<Id> run() {
    while (true) {
      if (!step()) {
        return fail("pickle byte {}: {}", opcode_at_, problem_.empty() ? "truncated" : problem_);
      }
      if (done_) return stack_.back();
    }
  }

  const Object& at(Id id) const { return objects_[id]; }

 private:
  // False: refused, with a reason in problem_ unless the bytes ran out.
  bool refuse(std::string reason) {
    problem_ = std::move(reason);
    return false;
  }

  bool take(std::size_t n, std::string_view& out) {
    if (bytes_.size() - position_ < n) return false;
    out = bytes_.substr(position_, n);
    position_ += n;
    return true;
  }
  // A little-endian number of up to eight bytes.
  bool take_number(std::size_t n, std::uint64_t& out) {
    std::string_view raw;
    if (!take(n, raw)) return false;
    out = 0;
    std::memcpy(&out, raw.data(), n);
    return true;
  }
  bool take_line(std::string_view& out) {
    const std::size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) return false;
    out = bytes_.substr(position_, end - position_);
    position_ = end + 1;
    return true;
  }

  bool push(Object object) {
    if (objects_.size() >= kMaxObjects) return refuse("too many objects");
    objects_.push_back(std::move(object));
    stack_.push_back(static_cast<Id>(objects_.size() - 1));
    return true;
  }
  bool push_int(std::int64_t value) { return push({Kind::Int, value, {}, {}}); }
  bool push_text(std::size_t length_bytes) {
    std::uint64_t length;
    std::string_view text;
    if (!take_number(length_bytes, length) || length > bytes_.size() ||
        !take(static_cast<std::size_t>(length), text)) {
      return false;
    }
    return push({Kind::Text, 0, text, {}});
  }
  // How many objects above the last mark (or above the stack's bottom) may be popped.
  std::size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  bool pop(Id& out) {
    if (available() == 0) return refuse("nothing on the stack");
    out = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool pop_to_mark(std::vector<Id>& out) {
    if (marks_.empty()) return refuse("no mark on the stack");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    out.assign(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return true;
  }
  bool push_tuple(std::size_t n) {
    if (available() < n) return refuse("nothing on the stack");
    Object tuple{Kind::Tuple, 0, {}, {stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end()}};
    stack_.resize(stack_.size() - n);
    return push(std::move(tuple));
  }
  bool append_to(Kind kind, const std::vector<Id>& items) {
    if (available() == 0 || objects_[stack_.back()].kind != kind) {
      return refuse("adds to something that is no container");
    }
    std::vector<Id>& into = objects_[stack_.back()].items;
    into.insert(into.end(), items.begin(), items.end());
    return true;
  }

  bool push_global(std::string_view module, std::string_view name) {
    const std::string global = std::string(module) + ' ' + std::string(name);
    for (const std::string_view known : {kOrderedDict, kRebuildTensor, kRebuildParameter}) {
      if (global == known) return push({Kind::Global, 0, known, {}});
    }
    if (is_storage_name(global)) return push({Kind::Global, 0, name, {}});
    return refuse("refuses to import " + tahl::quoted(global));
  }

  bool reduce() {
    Id arguments_id, function_id;
    if (!pop(arguments_id) || !pop(function_id)) return false;
    if (at(function_id).kind != Kind::Global || at(arguments_id).kind != Kind::Tuple) {
      return refuse("calls something that is no function");
    }
    const std::string_view function = at(function_id).text;
    const std::vector<Id> arguments = at(arguments_id).items;
    if (function == kOrderedDict && arguments.empty()) return push({Kind::Dict, 0, {}, {}});
    if (function == kRebuildTensor && arguments.size() >= 4 &&
        at(arguments[0]).kind == Kind::Storage && at(arguments[1]).kind == Kind::Int &&
        is_int_tuple(arguments[2]) && is_int_tuple(arguments[3]) &&
        at(arguments[2]).items.size() == at(arguments[3]).items.size()) {
      return push(
          {Kind::Tensor, at(arguments[1]).integer, {}, {arguments[0], arguments[2], arguments[3]}});
    }
    if (function == kRebuildParameter && !arguments.empty() &&
        at(arguments[0]).kind == Kind::Tensor) {
      stack_.push_back(arguments[0]);
      return true;
    }
    return refuse("calls " + tahl::quoted(function, 60) + " with arguments that do not fit");
  }

  bool is_int_tuple(Id id) const {
    if (at(id).kind != Kind::Tuple) return false;
    for (const Id item : at(id).items) {
      if (at(item).kind != Kind::Int) return false;
    }
    return true;
  }

  // ("storage", torch.FloatStorage, key, device, elements)
  bool persistent_id() {
    Id id;
    if (!pop(id)) return false;
    const Object& tuple = at(id);
    if (tuple.kind != Kind::Tuple || tuple.items.size() != 5 ||
        at(tuple.items[0]).text != "storage" || at(tuple.items[1]).kind != Kind::Global ||
        at(tuple.items[2]).kind != Kind::Text || at(tuple.items[4]).kind != Kind::Int ||
        !at(tuple.items[1]).text.ends_with("Storage")) {
      return refuse("persistent id is not a storage");
    }
    return push({Kind::Storage, at(tuple.items[4]).integer, {}, {tuple.items[1], tuple.items[2]}});
  }

  bool memoize(std::uint64_t key) {
    if (available() == 0) return refuse("nothing on the stack");
    if (memo_.size() >= kMaxObjects) return refuse("too many objects");
    memo_[key] = stack_.back();
    return true;
  }
  bool recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return refuse("unknown memo entry");
    if (stack_.size() >= kMaxObjects) return refuse("too many objects");
    stack_.push_back(found->second);
    return true;
  }

  // One operation. Codes and meanings: Python's pickletools.
  bool step() {
    opcode_at_ = position_;
    std::string_view raw;
    std::uint64_t n = 0;
    std::vector<Id> items;
    Id id;
    if (!take(1, raw)) return false;
    switch (static_cast<unsigned char>(raw[0])) {
      case 0x80:  // PROTO
        if (!take(1, raw)) return false;
        return (raw[0] >= 2 && raw[0] <= 5) || refuse("unknown protocol");
      case 0x95:  // FRAME
        return take_number(8, n);
      case '.':  // STOP
        if (stack_.size() != 1 || !marks_.empty()) return refuse("ends with an untidy stack");
        done_ = true;
        return true;
      case '(':  // MARK
        if (marks_.size() >= kMaxObjects) return refuse("too many objects");
        marks_.push_back(stack_.size());
        return true;
      case 'N':  // NONE
        stack_.push_back(0);
        return stack_.size() < kMaxObjects || refuse("too many objects");
      case 0x88:  // NEWTRUE
        return push({Kind::Bool, 1, {}, {}});
      case 0x89:  // NEWFALSE
        return push({Kind::Bool, 0, {}, {}});
      case 'K':  // BININT1
        return take_number(1, n) && push_int(static_cast<std::int64_t>(n));
      case 'M':  // BININT2
        return take_number(2, n) && push_int(static_cast<std::int64_t>(n));
      case 'J':  // BININT
        return take_number(4, n) && push_int(static_cast<std::int32_t>(n));
      case 0x8a: {  // LONG1, two's complement
        if (!take_number(1, n)) return false;
        if (n > 8) return refuse("number of more than 64 bits");
        const std::size_t width = n;
        if (!take_number(width, n)) return false;
        const int unused = 64 - 8 * static_cast<int>(width);
        return push_int(width == 0 ? 0 : static_cast<std::int64_t>(n << unused) >> unused);
      }
      case 'G':  // BINFLOAT: only ever read over
        return take(8, raw) && push({Kind::Float, 0, {}, {}});
      case 'X':  // BINUNICODE
        return push_text(4);
      case 0x8c:  // SHORT_BINUNICODE
        return push_text(1);
      case '}':  // EMPTY_DICT
        return push({Kind::Dict, 0, {}, {}});
      case ']':  // EMPTY_LIST
        return push({Kind::List, 0, {}, {}});
      case ')':  // EMPTY_TUPLE
        return push({Kind::Tuple, 0, {}, {}});
      case 0x85:  // TUPLE1
        return push_tuple(1);
      case 0x86:  // TUPLE2
        return push_tuple(2);
      case 0x87:  // TUPLE3
        return push_tuple(3);
      case 't':  // TUPLE
        return pop_to_mark(items) && push({Kind::Tuple, 0, {}, std::move(items)});
      case 'a':  // APPEND
        return pop(id) && append_to(Kind::List, {id});
      case 'e':  // APPENDS
        return pop_to_mark(items) && append_to(Kind::List, items);
      case 's': {  // SETITEM
        Id key;
        return pop(id) && pop(key) && append_to(Kind::Dict, {key, id});
      }
      case 'u':  // SETITEMS
        if (!pop_to_mark(items)) return false;
        if (items.size() % 2 != 0) return refuse("a key without a value");
        return append_to(Kind::Dict, items);
      case 'b':  // BUILD: a state_dict's own metadata
        if (!pop(id)) return false;
        return (available() > 0 && at(stack_.back()).kind == Kind::Dict &&
                at(id).kind == Kind::Dict) ||
               refuse("sets the state of something that is no dictionary");
      case 'q':  // BINPUT
        return take_number(1, n) && memoize(n);
      case 'r':  // LONG_BINPUT
        return take_number(4, n) && memoize(n);
      case 0x94:  // MEMOIZE
        return memoize(memo_.size());
      case 'h':  // BINGET
        return take_number(1, n) && recall(n);
      case 'j':  // LONG_BINGET
        return take_number(4, n) && recall(n);
      case 'c': {  // GLOBAL
        std::string_view module, name;
        return take_line(module) && take_line(name) && push_global(module, name);
      }
      case 0x93: {  // STACK_GLOBAL
        Id name;
        if (!pop(name) || !pop(id)) return false;
        if (at(id).kind != Kind::Text || at(name).kind != Kind::Text) {
          return refuse("imports something without a name");
        }
        return push_global(at(id).text, at(name).text);
      }
      case 'R':  // REDUCE
        return reduce();
      case 'Q':  // BINPERSID
        return persistent_id();
      default:
        return refuse(
            fmt::format("operation 0x{:02x} is not allowed", static_cast<unsigned char>(raw[0])));
    }
  }

  std::string_view bytes_;
  std::size_t position_ = 0, opcode_at_ = 0;
  bool done_ = false;
  std::string problem_;
  std::vector<Object> objects_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Id> memo_;
};

// --- Tensors -----------------------------------------------------------------------------------

template <class Stored>
float number_at(const std::uint8_t* bytes) {
  Stored value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<float>(value);
}
template <float (*convert)(std::uint16_t)>
float short_at(const std::uint8_t* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return convert(value);
}

struct StorageType {
  std::string_view name;
  std::uint64_t width;
  float (*read)(const std::uint8_t*);
};
constexpr std::array<StorageType, 7> kStorageTypes{{
    {"FloatStorage", 4, number_at<float>},
    {"DoubleStorage", 8, number_at<double>},
    {"HalfStorage", 2, short_at<float_from_half>},
    {"BFloat16Storage", 2, short_at<float_from_bfloat16>},
    {"LongStorage", 8, number_at<std::int64_t>},
    {"IntStorage", 4, number_at<std::int32_t>},
    {"ByteStorage", 1, number_at<std::uint8_t>},
}};

class TensorReader {
 public:
  TensorReader(const Archive& archive, const Unpickler& pickle, std::string folder,
               std::uint64_t limit)
      : archive_(archive),
        pickle_(pickle),
        folder_(std::move(folder)),
        storage_bytes_left_(limit),
        elements_left_(limit) {}

  Expected<TensorData> read(const std::string& shown, const Object& tensor) {
    const Object& storage = pickle_.at(tensor.items[0]);
    const std::string_view type_name = pickle_.at(storage.items[0]).text;
    const StorageType* type = nullptr;
    for (const StorageType& known : kStorageTypes) {
      if (known.name == type_name) type = &known;
    }
    if (type == nullptr) return fail("tensor {} is a {}", shown, tahl::quoted(type_name, 40));
    const auto bytes = load(std::string(pickle_.at(storage.items[1]).text));
    if (!bytes) return tl::unexpected(bytes.error());
    const std::uint64_t stored = (*bytes)->size() / type->width;

    TensorData result;
    std::vector<std::uint64_t> strides;
    std::uint64_t count = 1, last = 0;
    const std::vector<Id>& sizes = pickle_.at(tensor.items[1]).items;
    if (sizes.size() > 8) return fail("tensor {} has {} dimensions", shown, sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t side = pickle_.at(sizes[i]).integer;
      const std::int64_t stride = pickle_.at(pickle_.at(tensor.items[2]).items[i]).integer;
      constexpr std::int64_t kMaxSide = std::int64_t{1} << 31;
      if (side < 0 || stride < 0 || side > kMaxSide || stride > kMaxSide) {
        return fail("tensor {} has an impossible shape", shown);
      }
      count = side == 0 ? 0 : count * static_cast<std::uint64_t>(side);
      if (count > elements_left_) return fail("tensor {} is larger than the file", shown);
      if (side > 0)
        last += static_cast<std::uint64_t>(side - 1) * static_cast<std::uint64_t>(stride);
      result.shape.push_back(side);
      strides.push_back(static_cast<std::uint64_t>(stride));
    }
    if (tensor.integer < 0 || static_cast<std::uint64_t>(tensor.integer) > stored ||
        (count > 0 && last + static_cast<std::uint64_t>(tensor.integer) >= stored)) {
      return fail("tensor {} reaches beyond its storage", shown);
    }
    elements_left_ -= count;

    result.data.resize(static_cast<std::size_t>(count));
    std::vector<std::int64_t> index(result.shape.size(), 0);
    std::uint64_t from = static_cast<std::uint64_t>(tensor.integer);
    for (float& x : result.data) {
      x = type->read((*bytes)->data() + from * type->width);
      for (std::size_t i = index.size(); i-- > 0;) {  // the next index, last dimension fastest
        from += strides[i];
        if (++index[i] < result.shape[i]) break;
        from -= strides[i] * static_cast<std::uint64_t>(result.shape[i]);
        index[i] = 0;
      }
    }
    return result;
  }

 private:
  Expected<const std::vector<std::uint8_t>*> load(const std::string& key) {
    if (const auto found = storages_.find(key); found != storages_.end()) return &found->second;
    auto bytes = archive_.read(folder_ + "data/" + key, storage_bytes_left_);
    if (!bytes) return tl::unexpected(bytes.error());
    storage_bytes_left_ -= bytes->size();
    return &storages_.emplace(key, std::move(*bytes)).first->second;
  }

  const Archive& archive_;
  const Unpickler& pickle_;
  std::string folder_;
  std::uint64_t storage_bytes_left_;  // entries that overlap in the zip could exceed the file
  std::uint64_t elements_left_;       // and so could tensors that share a storage
  std::unordered_map<std::string, std::vector<std::uint8_t>> storages_;
};

// The value of a text key in a dictionary; the last one counts, as in Python.
const Object* lookup(const Unpickler& pickle, const Object& dict, std::string_view key) {
  const Object* found = nullptr;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Object& name = pickle.at(dict.items[i]);
    if (name.kind == Kind::Text && name.text == key) found = &pickle.at(dict.items[i + 1]);
  }
  return found;
}

// --- Writing -----------------------------------------------------------------------------------

// The operations that torch.save uses, without its memo: everything is written out in full.
class Pickler {
 public:
  Pickler& raw(std::string_view code) {
    bytes_ += code;
    return *this;
  }
  Pickler& number(std::int64_t n) {  // LONG1 of eight bytes: whatever the size
    bytes_ += "\x8a\x08";
    bytes_.append(reinterpret_cast<const char*>(&n), 8);
    return *this;
  }
  Pickler& text(std::string_view s) {
    const auto length = static_cast<std::uint32_t>(s.size());
    bytes_ += 'X';
    bytes_.append(reinterpret_cast<const char*>(&length), 4);
    bytes_ += s;
    return *this;
  }
  Pickler& numbers(const std::vector<std::int64_t>& tuple) {
    bytes_ += '(';
    for (const std::int64_t n : tuple) number(n);
    bytes_ += 't';
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

constexpr std::string_view kNewOrderedDict = "ccollections\nOrderedDict\n)R";

void write_tensor(Pickler& pickle, const TensorData& tensor, const std::string& key,
                  std::string_view storage) {
  std::vector<std::int64_t> strides(tensor.shape.size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(1, tensor.shape[i]);
  pickle.raw("ctorch._utils\n_rebuild_tensor_v2\n((").text("storage");
  pickle.raw("ctorch\n").raw(storage).raw("\n").text(key).text("cpu");
  pickle.number(static_cast<std::int64_t>(tensor.data.size())).raw("tQ").number(0);
  pickle.numbers(tensor.shape).numbers(strides);
  pickle.raw("\x89").raw(kNewOrderedDict).raw("tR");  // requires no gradient, has no hooks
}

// Entries that are stored as they are, with one date for all: the bytes depend on nothing else.
Expected<std::vector<std::uint8_t>> make_archive(
    const std::vector<std::pair<std::string, std::string>>& entries) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (target == nullptr) return fail("zip: {}", zip_error_strerror(&error));
  zip_source_keep(target);
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> keeper(target, zip_source_free);
  zip_t* archive = zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    zip_source_free(target);
    return fail("zip: {}", zip_error_strerror(&error));
  }
  std::unique_ptr<zip_t, ZipCloser> closer(archive);
  for (const auto& [name, bytes] : entries) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      if (source != nullptr) zip_source_free(source);
      return fail("zip: {}", zip_strerror(archive));
    }
    constexpr zip_uint16_t kMidnight = 0, kFirstOf1980 = 1 << 5 | 1;
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
    zip_file_set_dostime(archive, static_cast<zip_uint64_t>(index), kMidnight, kFirstOf1980, 0);
  }
  if (zip_close(archive) != 0) return fail("zip: {}", zip_strerror(archive));
  closer.release();
  zip_stat_t stat;
  if (zip_source_stat(target, &stat) != 0 || zip_source_open(target) != 0)
    return fail("zip: cannot be read back");
  std::vector<std::uint8_t> result(static_cast<std::size_t>(stat.size));
  const zip_int64_t n = zip_source_read(target, result.data(), result.size());
  zip_source_close(target);
  if (n != static_cast<zip_int64_t>(result.size())) return fail("zip: cannot be read back");
  return result;
}

}  // namespace

Expected<std::vector<std::uint8_t>> write_checkpoint(const Checkpoint& checkpoint) {
  Pickler pickle;
  pickle.raw("\x80\x02}(").text("network_config").raw("}(");
  for (const auto& [key, value] : checkpoint.config) pickle.text(key).number(value);
  pickle.raw("u").text("network").raw(kNewOrderedDict).raw("(");
  std::vector<std::pair<std::string, std::string>> data;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const bool whole = name.ends_with("num_batches_tracked");
    const std::string key = fmt::format("{}", data.size());
    pickle.text(name);
    write_tensor(pickle, tensor, key, whole ? "LongStorage" : "FloatStorage");
    std::string bytes;
    for (const float x : tensor.data) {
      const auto n = static_cast<std::int64_t>(whole ? x : 0);
      bytes.append(whole ? reinterpret_cast<const char*>(&n) : reinterpret_cast<const char*>(&x),
                   whole ? sizeof n : sizeof x);
    }
    data.emplace_back("archive/data/" + key, std::move(bytes));
  }
  pickle.raw("uu.");
  data.insert(data.begin(), {"archive/data.pkl", pickle.take()});
  data.emplace_back("archive/version", "3\n");
  return make_archive(data);
}

Expected<Checkpoint> parse_checkpoint(std::span<const std::uint8_t> bytes) {
  auto archive = Archive::open(bytes);
  if (!archive) return tl::unexpected(archive.error());
  auto folder = archive->folder();
  if (!folder) return tl::unexpected(folder.error());
  if (archive->contains(*folder + "byteorder")) {
    auto order = archive->read(*folder + "byteorder", 16);
    if (!order) return tl::unexpected(order.error());
    if (std::string(order->begin(), order->end()) != "little") return fail("not little-endian");
  }
  auto data = archive->read(*folder + "data.pkl", kMaxPickle);
  if (!data) return tl::unexpected(data.error());

  Unpickler pickle({reinterpret_cast<const char*>(data->data()), data->size()});
  const auto root = pickle.run();
  if (!root) return tl::unexpected(root.error());
  const Object& top = pickle.at(*root);
  if (top.kind != Kind::Dict) return fail("checkpoint is not a dictionary");
  const Object* config = lookup(pickle, top, "network_config");
  const Object* network = lookup(pickle, top, "network");
  if (config == nullptr || config->kind != Kind::Dict)
    return fail("checkpoint has no network_config");
  if (network == nullptr || network->kind != Kind::Dict) return fail("checkpoint has no network");

  Checkpoint result;
  for (std::size_t i = 0; i + 1 < config->items.size(); i += 2) {
    const Object& key = pickle.at(config->items[i]);
    const Object& value = pickle.at(config->items[i + 1]);
    if (key.kind != Kind::Text) return fail("network_config has a key that is no text");
    if (value.kind != Kind::Int && value.kind != Kind::Bool) {
      return fail("network_config {} is not a whole number", tahl::quoted(key.text));
    }
    result.config[std::string(key.text)] = value.integer;
  }
  TensorReader reader(*archive, pickle, *folder, bytes.size());
  for (std::size_t i = 0; i + 1 < network->items.size(); i += 2) {
    const Object& key = pickle.at(network->items[i]);
    const Object& value = pickle.at(network->items[i + 1]);
    if (key.kind != Kind::Text) return fail("network has a key that is no text");
    const std::string shown = tahl::quoted(key.text);
    if (value.kind != Kind::Tensor) return fail("network {} is not a tensor", shown);
    auto tensor = reader.read(shown, value);
    if (!tensor) return tl::unexpected(tensor.error());
    result.tensors[std::string(key.text)] = std::move(*tensor);
  }
  return result;
}

}  // namespace tahl::nn
