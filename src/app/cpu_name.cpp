#include "app/cpu_name.h"

#include <fmt/format.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace tahl::app {

std::string cpu_name() {
#ifdef __x86_64__
  std::string name;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    unsigned part[4] = {};
    if (__get_cpuid(leaf, &part[0], &part[1], &part[2], &part[3]) == 0) break;
    for (const unsigned word : part)
      for (int byte = 0; byte < 4; ++byte)
        if (const char c = static_cast<char>(word >> 8 * byte & 255)) name += c;
  }
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown processor";
  name = name.substr(first, name.find_last_not_of(' ') - first + 1);
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return name;
  const unsigned base = eax >> 8 & 15;
  const unsigned family = base == 15 ? base + (eax >> 20 & 255) : base;
  const unsigned model = (eax >> 4 & 15) | (base == 6 || base == 15 ? eax >> 12 & 0xf0 : 0);
  return fmt::format("{} (family {}, model {})", name, family, model);
#else
  return "unknown processor";
#endif
}

}  // namespace tahl::app
