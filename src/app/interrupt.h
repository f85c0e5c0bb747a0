#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stop_token>
#include <thread>

namespace tahl::app {

// Turns Ctrl-C and SIGTERM into a stop request, for work that wants to save where it stands. A
// second one ends the process at once. One at a time. (Handlers and a pipe rather than sigwait:
// libraries start threads before main that would take the signals, and a handler may do no more
// than write.)
class Interrupt {
 public:
  Interrupt() {
    if (pipe2(pipe_.data(), O_CLOEXEC) != 0) return;
    write_end() = pipe_[1];
    struct sigaction action {};
    action.sa_handler = [](int) {
      const char byte = 0;
      if (::write(write_end(), &byte, 1) != 1) _exit(130);
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
    waiter_ = std::jthread([this](std::stop_token quit) {
      pollfd wait{pipe_[0], POLLIN, 0};
      while (!quit.stop_requested()) {
        char byte = 0;
        if (poll(&wait, 1, 100) <= 0 || ::read(pipe_[0], &byte, 1) != 1) continue;
        if (!source_.request_stop()) _exit(130);
      }
    });
  }
  ~Interrupt() {
    if (!waiter_.joinable()) return;
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
    waiter_ = {};
    close(pipe_[0]);
    close(pipe_[1]);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  static int& write_end() {  // where the handler finds it
    static int fd = -1;
    return fd;
  }
  std::array<int, 2> pipe_{-1, -1};
  struct sigaction before_[2]{};
  std::stop_source source_;
  std::jthread waiter_;
};

}  // namespace tahl::app
