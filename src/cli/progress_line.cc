#include "cli/progress_line.h"

#include <unistd.h>
#include <cstdio>

#include <fmt/format.h>

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kTerminalInterval = 200ms, kPlainInterval = 10'000ms;

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) == 1) {
  next_ = start_ + (is_terminal_ ? 2 * kTerminalInterval : kPlainInterval);
}

ProgressLine::~ProgressLine() {
  if (shown_ && is_terminal_) fmt::print(stderr, "\r\x1b[K");
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(WallClock::now() - start_).count();
}

void ProgressLine::show(const std::string& line) {
  next_ = WallClock::now() + (is_terminal_ ? kTerminalInterval : kPlainInterval);
  fmt::print(stderr, "{}", is_terminal_ ? "\r\x1b[K" + line : line + "\n");
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace verbena::cli
