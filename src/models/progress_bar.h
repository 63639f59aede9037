// A progress bar: one line on a terminal with the part done, the rate and the remaining time.
// Prints nothing elsewhere.
#pragma once

#include <string>

#include "base/types.h"

namespace verbena::models {

class ProgressBar {
 public:
  ProgressBar(std::string what, u64 total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(u64 done);
  [[nodiscard]] double seconds() const;

 private:
  std::string what_;
  u64 total_;
  bool is_shown_ = false, is_terminal_ = false;
  double begin_ = 0, last_ = 0;
};

// "[#####-----]  50%  4.0 GiB of 8.0 GiB  3.9 GB/s  1 s left"
[[nodiscard]] std::string progress_text(u64 done, u64 total, double seconds);

}  // namespace verbena::models
