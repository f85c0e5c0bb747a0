#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/console.h"

int main(int argc, char** argv) {
  using namespace tahl::app;
  CLI::App app{
      "Tahl plays chess: it attacks as Tal did and moves as people do. Without a command it speaks "
      "UCI."};
  app.name("tahl");
  app.set_version_flag("--version", "tahl " TAHL_VERSION);
  app.require_subcommand(0, 1);
  int exit_code = 0;
  add_uci_command(app, exit_code);
  add_play_command(app, exit_code);
  add_predict_command(app, exit_code);
  add_match_command(app, exit_code);
  add_data_command(app, exit_code);
  add_train_command(app, exit_code);
  add_net_command(app, exit_code);
  add_encode_command(app, exit_code);
  add_perft_command(app, exit_code);
  add_bench_command(app, exit_code);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) app.parse("uci");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    print_error(error.what());
    return 2;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
  return exit_code;
}
