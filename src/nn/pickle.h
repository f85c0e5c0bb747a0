#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chess/error.h"
#include "nn/tensor.h"

namespace tahl::nn {

// What RDTChess saves: {'network_config': {...}, 'network': state_dict}. Other entries of the
// outermost dictionary (an optimiser, say) are read over.
struct Checkpoint {
  std::map<std::string, std::int64_t> config;  // whole numbers, and False and True as 0 and 1
  TensorMap tensors;                           // as floats, whatever they were stored as
};

// Reads a file of torch.save: a zip of a pickle and the tensors' bytes. A pickle is a program; this
// one is read as data: the only calls it may make are OrderedDict and torch's tensor rebuilding,
// which are understood here and never executed. Anything else, and anything that would need more
// memory than a few times the file, is refused. Errors name no file.
Expected<Checkpoint> parse_checkpoint(std::span<const std::uint8_t> bytes);

// The same as torch.save would write it, for any PyTorch since 1.6: tensors as float32, those named
// *num_batches_tracked as int64. The same checkpoint gives the same bytes.
Expected<std::vector<std::uint8_t>> write_checkpoint(const Checkpoint& checkpoint);

}  // namespace tahl::nn
