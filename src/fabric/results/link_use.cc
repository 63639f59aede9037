#include "fabric/results/link_use.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace verbena::fabric {
namespace {

using JSON = nlohmann::ordered_json;

std::size_t points_for(std::size_t directions) {
  return std::clamp(LinkUse::kMostCells / std::max<std::size_t>(1, directions),
                    LinkUse::kFewestPoints, LinkUse::kMostPoints);
}

}  // namespace

LinkUse::LinkUse(std::vector<Rate> rates, Duration end, Duration interval)
    : rates_(std::move(rates)),
      end_(std::max(end, ps(1))),
      interval_(std::max(interval, ps(1))),
      levels_(rates_.size()) {
  const i64 samples = (end_.ps() + interval_.ps() - 1) / interval_.ps();
  const i64 most = static_cast<i64>(points_for(rates_.size()));
  stretch_ps_ = interval_.ps() * ((samples + most - 1) / most);
  points_ = static_cast<std::size_t>((end_.ps() + stretch_ps_ - 1) / stretch_ps_);
  for (std::vector<Series>& quantity : all_) quantity.resize(rates_.size());
}

std::size_t LinkUse::point_of(Time time) const {
  const i64 point = (time - Time()).ps() / stretch_ps_;
  return std::min(points_, static_cast<std::size_t>(std::max<i64>(0, point)));
}

LinkUse::Series& LinkUse::series(Quantity quantity, u32 direction) {
  Series& values = all_[quantity][direction];
  if (values.empty()) values.resize(points_);
  return values;
}

// The level so far is that of all points up to `to`, which is not included but where it is the same
// as the first: a point has the greatest of its levels.
void LinkUse::hold_level(u32 direction, std::size_t to) {
  const Level& level = levels_[direction];
  if (level.bytes == 0) return;
  Series& values = series(kQueue, direction);
  for (std::size_t point = level.from; point < std::min(points_, std::max(to, level.from + 1));
       ++point)
    values[point] = std::max(values[point], static_cast<double>(level.bytes));
}

void LinkUse::note_queue(u32 direction, Time at, u64 bytes) {
  const std::size_t point = point_of(at);
  // A queue that ends within a point was there in it.
  hold_level(direction, (at - Time()).ps() % stretch_ps_ != 0 ? point + 1 : point);
  levels_[direction] = {.bytes = bytes, .from = point};
}

// Evenly over the time.
void LinkUse::spread(Quantity quantity, u32 direction, Time from, Time until, double amount) {
  const Time end = std::min(until, Time() + end_);
  if (amount <= 0 || end <= from) return;
  Series& values = series(quantity, direction);
  const double each_ps = amount / static_cast<double>((until - from).ps());
  for (std::size_t point = point_of(from); point < points_; ++point) {
    const Time begin = Time() + ps(static_cast<i64>(point) * stretch_ps_);
    if (begin >= end) return;
    const Duration part = std::min(end, begin + ps(stretch_ps_)) - std::max(from, begin);
    values[point] += each_ps * static_cast<double>(part.ps());
  }
}

void LinkUse::note_sent(u32 direction, Time at, Duration since, u64 bytes) {
  spread(kLoad, direction, at - since, at, static_cast<double>(bytes));
}
void LinkUse::note_marks(u32 direction, Time at, u64 marks) {
  const std::size_t point = point_of(at - ps(1));
  if (point < points_) series(kMarks, direction)[point] += static_cast<double>(marks);
}
void LinkUse::note_held(u32 direction, Time from, Time until, Duration held) {
  spread(kHeld, direction, from, until, static_cast<double>(held.ps()));
}

// Two neighbours become one point.
void LinkUse::halve() {
  for (u32 quantity = 0; quantity < kQuantities; ++quantity)
    for (Series& values : all_[quantity]) {
      if (values.empty()) continue;
      for (std::size_t i = 0; i < points_; i += 2) {
        const double next = i + 1 < points_ ? values[i + 1] : 0;
        values[i / 2] = quantity == kQueue ? std::max(values[i], next) : values[i] + next;
      }
      values.resize((points_ + 1) / 2);
    }
  points_ = (points_ + 1) / 2;
  stretch_ps_ *= 2;
}

// Loads and pauses: thousandths of what there could be.
double LinkUse::shown(Quantity quantity, u32 direction, double value) const {
  const double stretch = static_cast<double>(stretch_ps_);
  switch (quantity) {
    case kLoad:
      return std::min(1000.0, std::round(value * 8e15 / stretch /
                                         static_cast<double>(rates_[direction].bps())));
    case kHeld: return std::min(1000.0, std::round(value * 1000 / stretch));
    case kQueue:
    case kMarks: return value;
    case kQuantities: break;
  }
  return 0;
}

std::size_t LinkUse::changes() const {
  std::size_t count = 0;
  for (u32 quantity = 0; quantity < kQuantities; ++quantity)
    for (u32 direction = 0; direction < rates_.size(); ++direction) {
      double before = 0;
      for (const double value : all_[quantity][direction]) {
        const double now = shown(static_cast<Quantity>(quantity), direction, value);
        count += std::exchange(before, now) != now ? 2 : 0;
      }
    }
  return count;
}

JSON LinkUse::data() {
  for (u32 direction = 0; direction < levels_.size(); ++direction) hold_level(direction, points_);
  while (points_ > kFewestPoints && changes() > kMostValues) halve();
  JSON data;
  data["points"] = points_;
  data["point_us"] = static_cast<double>(stretch_ps_) * 1e-6;
  data["samples_per_point"] = stretch_ps_ / interval_.ps();
  constexpr std::array<const char*, kQuantities> kNames = {"load", "queue", "marks", "paused"};
  for (u32 quantity = 0; quantity < kQuantities; ++quantity) {
    JSON& all = data[kNames[quantity]] = JSON::array();
    for (u32 direction = 0; direction < rates_.size(); ++direction) {
      JSON changed = {direction};
      i64 before = 0;
      for (std::size_t point = 0; point < all_[quantity][direction].size(); ++point) {
        const i64 now = static_cast<i64>(
            shown(static_cast<Quantity>(quantity), direction, all_[quantity][direction][point]));
        if (std::exchange(before, now) == now) continue;
        changed.push_back(point);
        changed.push_back(now);
      }
      if (changed.size() > 1) all.push_back(std::move(changed));
    }
  }
  return data;
}

}  // namespace verbena::fabric
