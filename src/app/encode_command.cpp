#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/game_argument.h"
#include "chess/fen.h"
#include "nn/encoding.h"

namespace tahl::app {
namespace {

struct EncodeOptions {
  GameArgument position;
  std::string encoding = "rdt19";
  bool json = false;
};

constexpr std::string_view kRdt19Names[nn::kRdt19Planes] = {"our pawns",
                                                            "our knights",
                                                            "our bishops",
                                                            "our rooks",
                                                            "our queens",
                                                            "our king",
                                                            "their pawns",
                                                            "their knights",
                                                            "their bishops",
                                                            "their rooks",
                                                            "their queens",
                                                            "their king",
                                                            "we may castle short",
                                                            "we may castle long",
                                                            "they may castle short",
                                                            "they may castle long",
                                                            "behind a pawn that made a double step",
                                                            "halfmove clock / 100",
                                                            "seen before"};

void print_json(const EncodeOptions& options, const std::vector<nn::Plane>& planes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const nn::Plane& plane : planes) {
    if (plane.is_constant) {
      list.push_back(plane.constant);
    } else {
      list.push_back(fmt::format("{:016x}", plane.squares));
    }
  }
  fmt::print("{}\n",
             nlohmann::ordered_json{{"encoding", options.encoding}, {"planes", list}}.dump());
}

void print_text(const Game& game, const std::vector<nn::Plane>& planes) {
  fmt::print(
      "{}\nrows are ranks as the side to move counts them, its first rank first; columns a to h\n",
      to_fen(game.position()));
  for (std::size_t i = 0; i < planes.size(); ++i) {
    fmt::print("\nplane {}: {}\n", i, kRdt19Names[i]);
    if (planes[i].is_constant) {
      fmt::print("{} on every square\n", planes[i].constant);
      continue;
    }
    for (int rank = 0; rank < 8; ++rank) {
      for (int file = 0; file < 8; ++file)
        fmt::print("{}{}", file ? " " : "", planes[i].squares >> make_square(file, rank) & 1);
      fmt::print("\n");
    }
  }
}

int run(const EncodeOptions& options) {
  const Expected<Game> game = options.position.game();
  if (!game) return print_error(game.error());
  const std::vector<nn::Plane> planes = nn::rdt19_planes(*game);
  if (options.json) {
    print_json(options, planes);
  } else {
    print_text(*game, planes);
  }
  return 0;
}

}  // namespace

void add_encode_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("encode", "a position as a net's input planes");
  const auto options = std::make_shared<EncodeOptions>();
  options->position.add_to(*command);
  command->add_option("--encoding", options->encoding, "which planes: rdt19")
      ->check(CLI::IsMember({"rdt19"}).description(""))
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--chess960", options->position.chess960,
                    "castling in moves is king takes rook");
  command->add_flag(
      "--json", options->json,
      "one line: 16 hex digits a binary plane (bit rank*8+file), a number a constant one");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tahl::app
