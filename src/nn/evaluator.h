#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"
#include "chess/movegen.h"
#include "nn/network.h"

namespace tahl::nn {

// What a network thinks of one position.
struct Evaluation {
  float value = 0;            // expected result for the side to move, -1 lost to +1 won
  float draw = 0;             // probability of a draw; 0 where the net does not tell
  std::vector<float> logits;  // one a legal move, in the order given; -infinity where the head has
                              // no output for it
};

// The positions one forward pass is asked about. add() encodes at once, so the game may change
// afterwards.
struct EvalRequest {
  const Game* game;
  const MoveList* legal;
};

// The only thing search knows of networks. Not thread-safe: clone() one a thread (weights are
// shared).
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) = 0;
  Evaluation evaluate(const Game& game, const MoveList& legal);
  virtual std::unique_ptr<Evaluator> clone() const = 0;
  virtual std::string name() const = 0;  // for people: file or title of the net
  // How many of a game's last positions, the present one included, the answer may depend on, each
  // with whether it had been on the board before. All of them unless it is known to be fewer.
  static constexpr int kWholeGame = std::numeric_limits<int>::max();
  virtual int positions_read() const { return kWholeGame; }
};

// Reads a net file (safetensors, RDTChess .pt or lc0 .pb.gz), or the embedded default for an empty
// path.
Expected<std::unique_ptr<Evaluator>> load_evaluator(const std::string& path,
                                                    const NetworkOptions& options = {});
// Of a net in memory.
struct NetFile;
Expected<std::unique_ptr<Evaluator>> make_evaluator(const NetFile& net,
                                                    const NetworkOptions& options,
                                                    const std::string& name = "net");
// Same logits everywhere and value 0: for tests, and as a player that knows nothing.
std::unique_ptr<Evaluator> uniform_evaluator();

// A softmax over logits / temperature; temperature 0 puts everything on the (first) largest. Sums
// to 1.
std::vector<float> softmax(std::span<const float> logits, float temperature = 1);

// Nets inside the binary (cmake/embed.cmake), by name; the first is the default.
struct EmbeddedNet {
  std::string_view name;
  std::span<const unsigned char> bytes;
};
std::span<const EmbeddedNet> embedded_nets();

}  // namespace tahl::nn
