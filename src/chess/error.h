#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tahl {

// What is wrong with an input: one lower-case line that names the input and the place.
struct Error {
  std::string message;
};

template <class T>
using Expected = tl::expected<T, Error>;

// return fail("fen: rank {} has {} files", rank, files);
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

// A piece of user text fit for a message: at most `limit` bytes, unprintable ones as '?'.
std::string quoted(std::string_view text, std::size_t limit = 80);

}  // namespace tahl
