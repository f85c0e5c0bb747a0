#include "chess/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tahl {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int file, std::string name) : file_(file), name_(std::move(name)) {}
  ~FileSource() override {
    if (file_ != STDIN_FILENO) close(file_);
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  Expected<std::size_t> read(char* out, std::size_t size) override {
    for (;;) {
      const ssize_t n = ::read(file_, out, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail("{}: {}", name_, std::strerror(errno));
    }
  }

 private:
  int file_;
  std::string name_;
};

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  Expected<std::size_t> read(char* out, std::size_t size) override {
    const std::size_t n = text_.copy(out, size);
    text_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view text_;
};

class StreamSource final : public ByteSource {
 public:
  explicit StreamSource(std::istream& in) : in_(in) {}
  Expected<std::size_t> read(char* out, std::size_t size) override {
    in_.read(out, static_cast<std::streamsize>(size));
    if (in_.bad()) return fail("input: read error");
    return static_cast<std::size_t>(in_.gcount());
  }

 private:
  std::istream& in_;
};

// Gives back the bytes that were read to see what the source is, then the rest.
class PeekedSource final : public ByteSource {
 public:
  PeekedSource(std::string head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}
  Expected<std::size_t> read(char* out, std::size_t size) override {
    if (head_.empty()) return rest_->read(out, size);
    const std::size_t n = head_.copy(out, size);
    head_.erase(0, n);
    return n;
  }

 private:
  std::string head_;
  std::unique_ptr<ByteSource> rest_;
};

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(ZSTD_DStreamInSize()) {}

  Expected<std::size_t> read(char* out, std::size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0) {
      if (input_.pos == input_.size && !output_pending_) {
        auto n = packed_->read(buffer_.data(), buffer_.size());
        if (!n) return n;
        if (*n == 0) {
          if (inside_frame_) return fail("{}: compressed data ends early", name_);
          return 0;
        }
        input_ = {buffer_.data(), *n, 0};
      }
      const std::size_t left = ZSTD_decompressStream(stream_.get(), &output, &input_);
      if (ZSTD_isError(left))
        return fail("{}: compressed data is damaged: {}", name_, ZSTD_getErrorName(left));
      inside_frame_ = left != 0;
      output_pending_ = output.pos == output.size;  // the stream may hold more than fitted
    }
    return output.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> buffer_;
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool inside_frame_ = false;
  bool output_pending_ = false;
};

// Looks at the first bytes and puts the decompressor in front where they ask for one.
Expected<std::unique_ptr<ByteSource>> unpacked(std::unique_ptr<ByteSource> source,
                                               const std::string& name) {
  std::string head(4, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const auto n = source->read(head.data() + size, head.size() - size);
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) break;
    size += *n;
  }
  head.resize(size);
  const bool frame = head == "\x28\xb5\x2f\xfd";
  const bool skippable =
      size == 4 && (head[0] & '\xf0') == '\x50' && head.substr(1) == "\x2a\x4d\x18";
  if (head.starts_with("\x1f\x8b")) return fail("{}: gzip is not read: unpack it first", name);
  if (head.starts_with("BZh")) return fail("{}: bzip2 is not read: unpack it first", name);
  source = std::make_unique<PeekedSource>(std::move(head), std::move(source));
  if (frame || skippable) source = std::make_unique<ZstdSource>(std::move(source), name);
  return source;
}

}  // namespace

Expected<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path) {
  if (path == "-") return unpacked(std::make_unique<FileSource>(STDIN_FILENO, "input"), "input");
  const std::string name = path.string();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail("{}: {}", name, std::strerror(errno));
  return unpacked(std::make_unique<FileSource>(file, name), name);
}

Expected<std::unique_ptr<ByteSource>> bytes_of(std::string_view text) {
  return unpacked(std::make_unique<TextSource>(text), "input");
}

Expected<std::unique_ptr<ByteSource>> bytes_of(std::istream& in) {
  return unpacked(std::make_unique<StreamSource>(in), "input");
}

}  // namespace tahl
