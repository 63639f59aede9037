// ProgressLine: how far something is, on standard error: a line that is drawn again and again where
// that is a terminal, else a line now and then; none of what is over soon.
#pragma once

#include <chrono>
#include <string>

namespace verbena::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool is_due() const { return WallClock::now() >= next_; }  // cheap
  void show(const std::string& line);
  [[nodiscard]] double seconds() const;  // since it was made

 private:
  using WallClock = std::chrono::steady_clock;

  const bool is_terminal_;
  const WallClock::time_point start_ = WallClock::now();
  WallClock::time_point next_;
  bool shown_ = false;
};

}  // namespace verbena::cli
