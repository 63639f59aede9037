#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "host/os/clock.h"

namespace verbena::cli {
namespace {

// ECMA-48: another screen, without a cursor, and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l", kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H", kClearLine = "\x1b[K", kClearBelow = "\x1b[J";

void write_all(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool Terminal::is_one() { return ::isatty(STDOUT_FILENO) != 0; }

Terminal::Terminal() : has_keys_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_all(kEnter);
}

Terminal::~Terminal() {
  write_all(kLeave);
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

ScreenSize Terminal::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0)
    return {};
  return {.columns = window.ws_col, .rows = window.ws_row - 1u};  // the last line stays empty
}

std::string Terminal::frame(std::string_view lines) {
  std::string out(kHome);
  for (const char c : lines) {
    if (c == '\n') out += kClearLine;
    out += c;
  }
  return out.append(kClearBelow);
}

bool Terminal::wait_for_end(const StopSignal& stop, Duration limit) {
  const Time deadline = host::monotonic_now() + limit;
  while (true) {
    const Duration left = deadline - host::monotonic_now();
    switch (stop.wait(left, has_keys_ ? STDIN_FILENO : -1)) {
      case StopSignal::Woken::kTimeout: return false;
      case StopSignal::Woken::kStopped: return true;
      case StopSignal::Woken::kReadable: break;
    }
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1) has_keys_ = false;  // it is gone
    if (key == 'q' || key == 'Q') return true;
  }
}

}  // namespace verbena::cli
