// Terminal: standard output and input as a screen that is drawn again and again. Plain ANSI. As
// long as it lives, keys come one by one and are not shown; then all is as it was.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "cli/stop_signal.h"
#include "cli/top_screen.h"

namespace verbena::cli {

class Terminal {
 public:
  [[nodiscard]] static bool is_one();  // whether standard output is a terminal

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] ScreenSize size() const;
  // The lines, drawn over what was there.
  [[nodiscard]] static std::string frame(std::string_view lines);
  // Returns true if the user wants to end (the key q or a signal), false if the time is over.
  [[nodiscard]] bool wait_for_end(const StopSignal& stop, Duration limit);

 private:
  termios before_{};
  bool has_keys_ = false;  // standard input is a terminal too
};

}  // namespace verbena::cli
