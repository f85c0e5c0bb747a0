#include "chess/types.h"

#include "chess/error.h"

namespace tahl {

std::string square_name(Square s) {
  if (s >= 64) return "-";
  return {static_cast<char>('a' + file_of(s)), static_cast<char>('1' + rank_of(s))};
}

std::string quoted(std::string_view text, std::size_t limit) {
  std::string result = "\"";
  for (const char c : text.substr(0, limit)) result += (c >= 32 && c < 127) ? c : '?';
  result += text.size() > limit ? "...\"" : "\"";
  return result;
}

}  // namespace tahl
