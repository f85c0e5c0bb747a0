#pragma once

#include <string>
#include <string_view>

#include "chess/error.h"

namespace tahl::app {

// "tahl: MESSAGE" as one line on stderr. Returns 1, the exit status of a command that failed.
int print_error(std::string_view message);
inline int print_error(const Error& error) { return print_error(error.message); }

// A text of several lines as one.
std::string one_line(std::string_view text);

}  // namespace tahl::app
