#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tahl::nn {

// Numbers with a shape, row-major, as files hold them. Invariant: data.size() is the product of the
// shape's sides.
struct TensorData {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};

using TensorMap = std::map<std::string, TensorData>;

// "[64, 19, 3, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace tahl::nn
