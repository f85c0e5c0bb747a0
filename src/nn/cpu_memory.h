#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tahl::nn {

struct FreeBytes {
  void operator()(void* p) const { std::free(p); }
};
using CpuBytes = std::unique_ptr<std::byte[], FreeBytes>;

// Zeros that begin with a cache line. Where there are megabytes of them they lie on huge pages if
// the system gives any: weights are streamed, and with pages of 4 KB every other line of a large
// net costs a walk through the page tables.
CpuBytes make_cpu_bytes(std::size_t n);

}  // namespace tahl::nn
