#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "app/commands.h"
#include "app/console.h"
#include "app/page.h"
#include "app/page_api.h"
#include "app/server.h"

namespace tahl::app {
namespace {

struct PlayOptions {
  BoardOptions board;
  int port = 8000;
  bool no_open = false;
};

// Opens `url` as the desktop would, if there is one; a terminal browser must not take this
// terminal.
void open_browser(const std::string& url) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return;
  std::thread([url] {
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
    }
    std::string program = "xdg-open", argument = url;
    char* const arguments[] = {program.data(), argument.data(), nullptr};
    pid_t child = 0;
    if (posix_spawnp(&child, program.c_str(), &quiet, nullptr, arguments, environ) == 0)
      waitpid(child, nullptr, 0);
    posix_spawn_file_actions_destroy(&quiet);
  }).detach();
}

int run(const PlayOptions& options) {
  if (page_files().empty())
    return print_error("play: this program was built without the page (-DTAHL_PAGE=OFF)");
  const Expected<std::unique_ptr<BoardApi>> api = BoardApi::create(options.board);
  if (!api) return print_error(api.error());
  const ServerOptions server_options{
      .port = options.port, .more_ports = options.port == 0 ? 0 : 100, .on_signals = true};
  const Expected<std::unique_ptr<Server>> server =
      Server::listen(server_options, [&](const HttpRequest& request, const std::stop_source& stop) {
        return (*api)->handle(request, stop);
      });
  if (!server) return print_error(server.error());

  const int port = (*server)->port();
  if (options.port != 0 && port != options.port) {
    fmt::print(stderr, "tahl: port {} is busy, taking {}\n", options.port, port);
  }
  const std::string url = fmt::format("http://127.0.0.1:{}/", port);
  fmt::print("The board is at {}\n", url);
  if (!(*api)->net_name().empty()) fmt::print("Net: {}\n", (*api)->net_name());
  fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  if (!options.no_open) open_browser(url);
  (*server)->run();
  return 0;
}

}  // namespace

void add_play_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "play", "a board in the browser: play the net or the minimax, or watch them");
  const auto options = std::make_shared<PlayOptions>();
  BoardOptions& board = options->board;
  command
      ->add_option("--port", options->port,
                   "port on this machine; the next free one if it is busy, 0 for any")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_flag("--black", board.human_is_black, "you have Black");
  command->add_option("--depth", board.depth, "plies that the minimax looks ahead")
      ->check(CLI::Range(1, 6))
      ->capture_default_str();
  command->add_option("--net", board.net, "net file (the embedded one if missing)")
      ->type_name("FILE");
  command
      ->add_option("--player", board.player,
                   "how the net chooses: policy (no search), mcts, or mcts:nodes=N,...")
      ->capture_default_str();
  command->add_option("--nodes", board.nodes, "positions that mcts looks at")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  command
      ->add_option("--temperature", board.temperature,
                   "0: always the best move; 1: as often as the net expects it")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  command->add_option("--seed", board.seed, "makes the players' lots repeatable");
  command->add_flag("--no-open", options->no_open, "do not open the browser");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tahl::app
