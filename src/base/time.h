// Time as the core sees it: integer picoseconds, passed in by the driver. This layer has no clock.
// Picoseconds, because a 1048-byte frame at 800 Gb/s takes 10.48 ns; 2^63 ps are 106 days.
#pragma once

#include <compare>
#include <limits>

#include "base/types.h"

namespace verbena {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration from_ps(i64 v) { return Duration(v); }
  constexpr i64 ps() const { return ps_; }
  constexpr i64 ns() const { return ps_ / 1000; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
  constexpr double nanoseconds() const { return static_cast<double>(ps_) * 1e-3; }
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.ps_ + b.ps_); }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.ps_ - b.ps_); }
  friend constexpr Duration operator*(Duration a, i64 n) { return Duration(a.ps_ * n); }
  friend constexpr Duration operator/(Duration a, i64 n) { return Duration(a.ps_ / n); }

 private:
  constexpr explicit Duration(i64 v) : ps_(v) {}
  i64 ps_ = 0;
};

constexpr Duration ps(i64 n) { return Duration::from_ps(n); }
constexpr Duration ns(i64 n) { return Duration::from_ps(n * 1'000); }
constexpr Duration us(i64 n) { return Duration::from_ps(n * 1'000'000); }
constexpr Duration ms(i64 n) { return Duration::from_ps(n * 1'000'000'000); }
constexpr Duration sec(i64 n) { return Duration::from_ps(n * 1'000'000'000'000); }

// A point in time since the driver's epoch (boot for the live driver, 0 for a simulation).
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ps(i64 v) { return Time(v); }
  static constexpr Time from_ns(i64 v) { return Time(v * 1000); }
  static constexpr Time never() { return Time(std::numeric_limits<i64>::max()); }
  constexpr i64 ps() const { return ps_; }
  constexpr i64 ns() const { return ps_ / 1000; }
  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) { return Time(t.ps_ + d.ps()); }
  friend constexpr Time operator-(Time t, Duration d) { return Time(t.ps_ - d.ps()); }
  friend constexpr Duration operator-(Time a, Time b) { return Duration::from_ps(a.ps_ - b.ps_); }

 private:
  constexpr explicit Time(i64 v) : ps_(v) {}
  i64 ps_ = 0;
};

}  // namespace verbena
