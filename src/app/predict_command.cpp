#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/game_argument.h"
#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "nn/evaluator.h"
#include "nn/policy_map.h"

namespace tahl::app {
namespace {

struct PredictOptions {
  GameArgument position;
  std::string net;
  std::string precision = "auto";
  bool json = false;
};

struct Prediction {
  Move move;
  float logit;
  float p;
};

void print_json(const Game& game, float value, const std::vector<Prediction>& predictions) {
  using Json = nlohmann::ordered_json;
  const Position& position = game.position();
  Json moves = Json::array();
  for (const Prediction& prediction : predictions) {
    const std::optional<int> index = nn::fromto_index(position, prediction.move);
    moves.push_back(
        {{"uci", to_uci(position, prediction.move, game.is_chess960())},
         {"san", to_san(position, prediction.move)},
         {"index", index ? Json(*index) : Json(nullptr)},
         {"logit", std::isfinite(prediction.logit) ? Json(prediction.logit) : Json(nullptr)},
         {"p", prediction.p}});
  }
  fmt::print("{}\n", Json{{"fen", to_fen(position)}, {"value", value}, {"moves", moves}}.dump());
}

void print_text(const Game& game, const std::string& net, float value,
                const std::vector<Prediction>& predictions) {
  const Position& position = game.position();
  fmt::print("{}\nnet    {}\nvalue  {:+.3f} for {}\n", to_fen(position), net, value,
             position.side_to_move() == Color::White ? "White" : "Black");
  if (predictions.empty()) fmt::print("no legal moves\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(5, predictions.size()); ++i)
    fmt::print("  {:<8}{:5.1f} %\n", to_san(position, predictions[i].move), 100 * predictions[i].p);
}

int run(const PredictOptions& options) {
  const Expected<Game> game = options.position.game();
  if (!game) return print_error(game.error());
  const Expected<nn::Precision> precision = nn::parse_precision(options.precision);
  if (!precision) return print_error(precision.error());
  const Expected<std::unique_ptr<nn::Evaluator>> evaluator =
      nn::load_evaluator(options.net, {.precision = *precision});
  if (!evaluator) return print_error(evaluator.error());

  const MoveList legal = legal_moves(game->position());
  const nn::Evaluation evaluation = (*evaluator)->evaluate(*game, legal);
  std::vector<Prediction> predictions;
  if (!legal.empty()) {
    const std::vector<float> p = nn::softmax(evaluation.logits);
    for (int i = 0; i < legal.size(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      predictions.push_back({legal[i], evaluation.logits[k], p[k]});
    }
  }
  std::stable_sort(predictions.begin(), predictions.end(),
                   [](const Prediction& a, const Prediction& b) { return a.p > b.p; });
  if (options.json) {
    print_json(*game, evaluation.value, predictions);
  } else {
    print_text(*game, (*evaluator)->name(), evaluation.value, predictions);
  }
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("predict", "what the net thinks of a position");
  const auto options = std::make_shared<PredictOptions>();
  options->position.add_to(*command);
  command->add_option("--net", options->net, "net file (the embedded one if missing)")
      ->type_name("FILE");
  command->add_option("--precision", options->precision, "of the net's arithmetic")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8"}))
      ->capture_default_str();
  command->add_flag("--chess960", options->position.chess960,
                    "castling in moves is king takes rook");
  command->add_flag("--json", options->json, "every legal move, as one line of JSON");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tahl::app
