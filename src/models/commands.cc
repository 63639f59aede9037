#include "models/commands.h"

#include <signal.h>

#include <fmt/format.h>

namespace verbena::models {
namespace {

volatile sig_atomic_t was_stopped = 0;

}  // namespace

int fail(int status, const std::string& why) {
  fmt::print(stderr, "verbena: {}\n", why);
  return status;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { was_stopped = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_stopped() { return was_stopped != 0; }

}  // namespace verbena::models
