// Requests that find their peer asleep: the pause between two, and the summary of what each took.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

namespace pauses {

// 0.3 to 1.3 ms: longer than anyone stays awake for a next request, and in step with no timer.
inline void sleep_between() {
  static std::uint32_t state = 0x2545f491;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  const timespec pause{.tv_sec = 0, .tv_nsec = 300'000 + static_cast<long>(state % 1'000'000)};
  nanosleep(&pause, nullptr);
}

// A line "p50 p99" in us, then a histogram with buckets of powers of two.
inline void print(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const auto us = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))] * 1e6;
  };
  std::printf("%.1f %.1f\n", us(0.5), us(0.99));
  for (double from = 0, to = 1; from <= us(1); from = to, to *= 2) {
    const auto count = std::ranges::count_if(
        seconds, [&](double value) { return from <= value * 1e6 && value * 1e6 < to; });
    if (count != 0) std::printf("%8.0f to %.0f us: %td\n", from, to, count);
  }
}

}  // namespace pauses
