#include "app/console.h"

#include <cstdio>

namespace tahl::app {

int print_error(std::string_view message) {
  fmt::print(stderr, "tahl: {}\n", one_line(message));
  return 1;
}

std::string one_line(std::string_view text) {
  std::string line;
  bool gap = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
      gap = !line.empty();
      continue;
    }
    if (gap) line += ' ';
    gap = false;
    line += c;
  }
  return line;
}

}  // namespace tahl::app
