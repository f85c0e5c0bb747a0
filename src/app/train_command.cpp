#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "app/commands.h"
#include "app/console.h"

namespace tahl::app {
namespace {

// Becomes `tahl-train`, which is apart because LibTorch takes longer to load than most commands to
// run. Returns only if it cannot.
int run(std::vector<std::string> arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / "tahl-train").string();
  if (error || access(program.c_str(), X_OK) != 0)
    return print_error(
        "train: there is no tahl-train beside this program (build with -DTAHL_TRAIN=ON)");
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return print_error(fmt::format("train: {}: {}", program, std::strerror(errno)));
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("train", "fit a net to packed games (runs tahl-train)");
  command->prefix_command();
  command->set_help_flag();  // --help is tahl-train's
  command->callback([command, &exit_code] { exit_code = run(command->remaining()); });
}

}  // namespace tahl::app
