#include "fabric/results/series.h"

#include <algorithm>

namespace verbena::fabric {

u32 SampleTimes::take(Time now) {
  times_.push_back(now);
  next_ = now + interval_;
  return static_cast<u32>(times_.size() - 1);
}

void SampleTimes::halve() {
  std::vector<Time> kept;
  for (std::size_t i = 0; i < times_.size(); i += 2) kept.push_back(times_[i]);
  times_ = std::move(kept);
  interval_ = interval_ * 2;
  next_ = times_.empty() ? next_ : times_.back() + interval_;
}

// A value that was new at a sample left out is new at the next one, if that has no other.
void SeriesSet::halve() {
  points_ = 0;
  for (std::vector<Point>& series : series_) {
    std::vector<Point> kept;
    for (const Point& point : series) {
      const Point moved{(point.sample + 1) / 2, point.value};
      if (!kept.empty() && kept.back().sample == moved.sample)
        kept.back() = moved;
      else
        kept.push_back(moved);
    }
    series = std::move(kept);
    points_ += series.size();
  }
}

std::vector<u64> SeriesSet::filled(std::size_t thing, std::size_t samples) const {
  std::vector<u64> values(samples);
  u64 value = 0;
  std::size_t at = 0;
  for (const Point& point : series_[thing]) {
    const std::size_t until = std::min<std::size_t>(point.sample, samples);
    while (at < until) values[at++] = value;
    value = point.value;
  }
  while (at < samples) values[at++] = value;
  return values;
}

}  // namespace verbena::fabric
