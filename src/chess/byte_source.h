#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <string_view>

#include "chess/error.h"

namespace tahl {

// Bytes read in order from somewhere.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Puts up to `size` bytes into `out` and says how many; 0 only at the end. After an error the
  // source is finished.
  virtual Expected<std::size_t> read(char* out, std::size_t size) = 0;
};

// A file, or standard input for "-". What starts like a zstd stream is decompressed as it is read:
// any number of frames, skippable ones too; data that ends early is an error. Gzip and bzip2 are
// refused by name.
Expected<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path);

// The same for bytes in memory and for a stream, both of which must outlive the source.
Expected<std::unique_ptr<ByteSource>> bytes_of(std::string_view text);
Expected<std::unique_ptr<ByteSource>> bytes_of(std::istream& in);

}  // namespace tahl
