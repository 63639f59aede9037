#include "models/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "models/handles.h"

namespace verbena::models {
namespace {

constexpr double kInterval = 0.1;
constexpr std::size_t kWidth = 24;

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressBar::ProgressBar(std::string what, u64 total)
    : what_(std::move(what)),
      total_(total),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      begin_(clock_seconds()) {}

ProgressBar::~ProgressBar() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
}

double ProgressBar::seconds() const { return clock_seconds() - begin_; }

void ProgressBar::show(u64 done) {
  const double now = clock_seconds();
  if (!is_terminal_ || now - last_ < kInterval) return;
  last_ = now;
  is_shown_ = true;
  fmt::print(stderr, "\r{} {}\033[K", what_, progress_text(done, total_, now - begin_));
}

std::string progress_text(u64 done, u64 total, double seconds) {
  const double part =
      total == 0 ? 1 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const auto full = static_cast<std::size_t>(part * kWidth);
  std::string text = fmt::format("[{}{}] {:3.0f}%  {} of {}  {:.2f} GB/s", std::string(full, '#'),
                                 std::string(kWidth - full, '-'), part * 100, size_text(done),
                                 size_text(total), rate / 1e9);
  if (rate > 0 && done < total)
    text += fmt::format("  {:.0f} s left", static_cast<double>(total - done) / rate);
  return text;
}

}  // namespace verbena::models
