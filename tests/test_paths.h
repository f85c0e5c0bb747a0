#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tahl::test {

// A small file of this repository.
inline std::filesystem::path data_path(const std::string& name) {
  return std::filesystem::path(TAHL_TEST_DATA) / name;
}

// A file of the larger collection that may lie beside the checkout (../shared), where there is one.
inline std::optional<std::filesystem::path> shared_path(const std::string& name) {
  std::filesystem::path path = std::filesystem::path(TAHL_SHARED_DATA) / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}  // namespace tahl::test
