#include "jobs/plan/pfc_headroom.h"

#include <array>

namespace verbena::jobs {
namespace {

constexpr u64 kAroundFrame = 20;  // bytes: preamble, start delimiter, interpacket gap
constexpr u64 kPauseFrame = 64;
constexpr u64 kNanosecondsPerMetre = 5;
constexpr u64 kQuantum = 512;  // bits

struct Delays {
  u64 gbps;
  u64 phy_bits;         // at that rate
  u64 response_quanta;  // at that rate
};
constexpr std::array kDelays = {
    Delays{10, 8192, 60},
    Delays{25, 6144, 80},
    Delays{40, 24576, 118},
    Delays{100, 122880, 394},
};
// 802.3, 31B.3.7 has the response of 400 Gb/s too.
constexpr Delays kFastest = {400, 4 * 122880, 905};

u64 bytes(u64 bits) { return (bits + 7) / 8; }

// Bits that go by at `rate` in the time of `bits` at another.
u64 scaled(u64 bits, Rate rate, u64 gbps) {
  return static_cast<u64>(static_cast<unsigned __int128>(bits) * rate.bps() /
                          (gbps * 1'000'000'000));
}

Delays delays_of(Rate rate) {
  Delays best = kDelays[0];
  for (const Delays& delays : kDelays)
    if (rate >= verbena::gbps(delays.gbps)) best = delays;
  return rate >= verbena::gbps(kFastest.gbps) ? kFastest : best;
}

}  // namespace

Headroom pfc_headroom(const HeadroomRequest& request) {
  const Delays delays = delays_of(request.rate);
  const u64 cable_ps = 2 * request.cable_metres * kNanosecondsPerMetre * 1000;
  const auto cable_bits = static_cast<u64>(static_cast<unsigned __int128>(request.rate.bps()) *
                                           cable_ps / 1'000'000'000'000);
  return {.frame = request.longest_frame + kAroundFrame,
          .pause = kPauseFrame + kAroundFrame,
          .cable = bytes(cable_bits),
          .phy = bytes(scaled(delays.phy_bits, request.rate, delays.gbps)),
          .response = bytes(scaled(delays.response_quanta * kQuantum, request.rate, delays.gbps)),
          .last = request.longest_lossless_frame + kAroundFrame};
}

}  // namespace verbena::jobs
