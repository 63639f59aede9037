// Latencies: how long messages took, counted in buckets a sixteenth of a power of two wide, so that
// a quantile is up to 6 % more than it was.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "base/time.h"

namespace verbena::jobs {

class Latencies {
 public:
  void add(Duration latency) { ++counts_[bucket_of(latency)]; }
  Latencies& operator+=(const Latencies& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  [[nodiscard]] u64 count() const {
    u64 sum = 0;
    for (const u64 count : counts_) sum += count;
    return sum;
  }
  // No more than `part` of them (0 .. 1) took longer than this; 0: there are none.
  [[nodiscard]] Duration quantile(double part) const {
    const auto wanted = static_cast<u64>(part * static_cast<double>(count()));
    u64 met = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      met += counts_[i];
      if (met != 0 && met >= wanted) return ps(static_cast<i64>(end_of(i)));
    }
    return {};
  }

 private:
  static constexpr u32 kPlaces = 4;              // binary, behind the first
  static constexpr u32 kLeast = 10, kMost = 50;  // powers of two, in ps: 1 ns .. 19 minutes
  static constexpr std::size_t kBuckets = (kMost - kLeast) << kPlaces;

  static std::size_t bucket_of(Duration latency) {
    const u64 value = std::clamp<u64>(static_cast<u64>(std::max<i64>(0, latency.ps())),
                                      u64{1} << kLeast, (u64{1} << kMost) - 1);
    const u32 power = static_cast<u32>(std::bit_width(value)) - 1;
    const u64 places = (value >> (power - kPlaces)) & ((1u << kPlaces) - 1);
    return (std::size_t{power - kLeast} << kPlaces) + places;
  }
  static u64 end_of(std::size_t bucket) {
    const u64 power = kLeast + (bucket >> kPlaces);
    return ((u64{1} << kPlaces) + (bucket & ((1u << kPlaces) - 1)) + 1) << (power - kPlaces);
  }

  std::array<u64, kBuckets> counts_{};
};

}  // namespace verbena::jobs
