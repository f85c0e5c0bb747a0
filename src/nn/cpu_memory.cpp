#include "nn/cpu_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace tahl::nn {

CpuBytes make_cpu_bytes(std::size_t n) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  const bool is_large = n >= kHugePage;
  const std::size_t alignment = is_large ? kHugePage : kLine;
  const std::size_t size = std::max((n + alignment - 1) / alignment * alignment, alignment);
  auto* p = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (p == nullptr) throw std::bad_alloc();
  if (is_large) ::madvise(p, size, MADV_HUGEPAGE);  // if not, then not
  std::fill_n(p, n, std::byte{});
  return CpuBytes(p);
}

}  // namespace tahl::nn
