#pragma once

#include <span>
#include <string_view>

namespace tahl::app {

// A file of the board's page, bundled at build time (web/, cmake/embed.cmake).
struct PageFile {
  std::string_view path;  // as the browser asks for it: "/index.html"
  std::string_view type;  // its Content-Type
  std::span<const unsigned char> bytes;
};
// Empty if the program was built without the page (-DTAHL_PAGE=OFF).
std::span<const PageFile> page_files();

}  // namespace tahl::app
