// SeriesSet: values of many things over time, each stored only when it has changed. When there is
// too much of it, every second point in time is left out, and the interval between two doubles: so
// a simulation of any length has results of a bounded size.
#pragma once

#include <vector>

#include "base/time.h"

namespace verbena::fabric {

// When values are taken.
class SampleTimes {
 public:
  static constexpr Duration kFirstInterval = us(1);

  [[nodiscard]] Time next() const { return next_; }
  [[nodiscard]] Duration interval() const { return interval_; }
  [[nodiscard]] const std::vector<Time>& times() const { return times_; }
  // A sample is taken now, at next() or later. Its number.
  u32 take(Time now);
  // Leaves out those of odd numbers.
  void halve();

 private:
  Time next_{};
  Duration interval_ = kFirstInterval;
  std::vector<Time> times_;
};

class SeriesSet {
 public:
  struct Point {
    u32 sample = 0;  // its number
    u64 value = 0;   // until the next point
  };

  explicit SeriesSet(std::size_t things) : series_(things) {}

  // Values begin with 0.
  void note(std::size_t thing, u32 sample, u64 value) {
    std::vector<Point>& series = series_[thing];
    if (value == (series.empty() ? 0 : series.back().value)) return;
    series.push_back({sample, value});
    ++points_;
  }
  void halve();  // as SampleTimes
  [[nodiscard]] std::size_t points() const { return points_; }
  [[nodiscard]] std::size_t size() const { return series_.size(); }
  [[nodiscard]] const std::vector<Point>& of(std::size_t thing) const { return series_[thing]; }
  // The value at each of so many samples.
  [[nodiscard]] std::vector<u64> filled(std::size_t thing, std::size_t samples) const;

 private:
  std::vector<std::vector<Point>> series_;
  std::size_t points_ = 0;
};

}  // namespace verbena::fabric
