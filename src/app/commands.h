#pragma once

#include <CLI/CLI.hpp>

namespace tahl::app {

// Each adds a sub-command to `app`. When it is chosen, its callback does the work and leaves the
// process's exit status in `exit_code`: 0 done, 1 failed (after one line on stderr: print_error).
// Wrong usage throws CLI11's errors, which main turns into one line and status 2.
void add_uci_command(CLI::App& app, int& exit_code);
void add_perft_command(CLI::App& app, int& exit_code);
void add_predict_command(CLI::App& app, int& exit_code);
void add_encode_command(CLI::App& app, int& exit_code);
void add_data_command(CLI::App& app, int& exit_code);
void add_train_command(CLI::App& app, int& exit_code);
void add_match_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);
void add_net_command(CLI::App& app, int& exit_code);
void add_play_command(CLI::App& app, int& exit_code);

}  // namespace tahl::app
