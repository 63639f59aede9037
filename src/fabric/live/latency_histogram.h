// LatencyHistogram: how long packets took, in classes that are 1/16 of their value wide, so that a
// percentile is known to 6 %. (As HdrHistogram's, Tene 2012, with 4 bits of precision.)
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

class LatencyHistogram {
 public:
  void add(Duration latency) {
    ++counts_[class_of(static_cast<u64>(std::max<i64>(latency.ns(), 0)))];
    ++count_;
    longest_ = std::max(longest_, latency);
  }
  [[nodiscard]] u64 count() const { return count_; }
  [[nodiscard]] Duration longest() const { return longest_; }
  // The time that so many percent did not exceed; 0 where there are none. `percent`: 0 .. 100
  [[nodiscard]] Duration percentile(u32 percent) const {
    u64 left = (count_ * percent + 99) / 100;
    for (u32 i = 0; i < kClasses; ++i) {
      if (counts_[i] >= left && left != 0) return std::min(ns(end_of(i)), longest_);
      left -= std::min(left, counts_[i]);
    }
    return longest_;
  }

 private:
  static constexpr u32 kPrecisionBits = 4;
  static constexpr u32 kInOctave = 1u << kPrecisionBits;
  static constexpr u32 kOctaves = 36;  // up to 2^39 ns: nine minutes
  static constexpr u32 kClasses = (kOctaves + 1) * kInOctave;

  static u32 class_of(u64 value_ns) {
    if (value_ns < kInOctave) return static_cast<u32>(value_ns);
    const u32 octave = static_cast<u32>(std::bit_width(value_ns)) - kPrecisionBits;
    const u64 within = (value_ns >> (octave - 1)) & (kInOctave - 1);
    return std::min<u32>(octave * kInOctave + static_cast<u32>(within), kClasses - 1);
  }
  // The largest value of the class.
  static i64 end_of(u32 number) {
    const u32 octave = number / kInOctave, within = number % kInOctave;
    if (octave == 0) return within;
    return (i64{kInOctave + within + 1} << (octave - 1)) - 1;
  }

  std::array<u64, kClasses> counts_{};
  u64 count_ = 0;
  Duration longest_{};
};

}  // namespace verbena::fabric
