// The time that bytes take at a rate, and how it is rounded.
#pragma once

#include "base/rate.h"

namespace verbena {

enum class TransmissionClock : u8 {
  kPicoseconds,
  kNanoseconds,  // whole ones, truncated as ns-3's double seconds are
};

// Converts a point or span of time of `seconds` as ns-3 (before 3.3x) reads it from a double: 64
// binary places of a second, then whole nanoseconds, truncated twice. So 0.0002 is 199999 ns.
[[nodiscard]] constexpr Duration ns3_duration(double seconds) {
  const u64 whole = static_cast<u64>(seconds);
  const double fraction = seconds - static_cast<double>(whole);
  const u64 places = static_cast<u64>(fraction * 0x1.0p64);
  const auto nanoseconds =
      static_cast<u64>(static_cast<unsigned __int128>(places) * 1'000'000'000 >> 64);
  return ns(static_cast<i64>(whole * 1'000'000'000 + nanoseconds));
}

// Precondition: the rate is not 0.
[[nodiscard]] constexpr Duration transmission_time(Rate rate, u32 bytes, TransmissionClock clock) {
  switch (clock) {
    case TransmissionClock::kPicoseconds: return rate.time_of(bytes);
    case TransmissionClock::kNanoseconds:
      return ns3_duration(static_cast<double>(bytes) * 8 / static_cast<double>(rate.bps()));
  }
  return {};
}

}  // namespace verbena
