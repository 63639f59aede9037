// NVLinkPorts: the GPUs' ports to the switches of their nodes. A message takes its sender's port,
// then its receiver's, each for the time that its bytes last: the one in the order in which
// messages were handed over, the other in that in which their first bytes come, a latency after
// they began to leave. No packets, no loss: NVLink has credits, and its switch the same rate on
// each port.
#pragma once

#include <algorithm>
#include <vector>

#include "jobs/cluster.h"

namespace verbena::jobs {

// Returns the time of the bytes at the rate, for any number of them.
[[nodiscard]] constexpr Duration time_at(Rate rate, u64 bytes) {
  return ps(
      static_cast<i64>(static_cast<unsigned __int128>(bytes) * 8'000'000'000'000 / rate.bps()));
}

class NVLinkPorts {
 public:
  NVLinkPorts(u32 ranks, const NVLinkConfig& config) : config_(config), ports_(ranks) {}

  // Returns when the first bytes of a message that is handed over now reach its receiver's port.
  [[nodiscard]] Time send(u32 from, u64 bytes, Time now) {
    return take(ports_[from].out_free, bytes, now) + config_.latency;
  }
  // Returns when all of a message has arrived whose first bytes arrive now.
  [[nodiscard]] Time receive(u32 to, u64 bytes, Time now) {
    return take(ports_[to].in_free, bytes, now) + time_at(config_.rate, bytes);
  }

 private:
  struct alignas(64) Port {  // the two sides of a rank, which one thread simulates
    Time out_free, in_free;
  };
  // When it begins.
  Time take(Time& free, u64 bytes, Time now) const {
    const Time begins = std::max(now, free);
    free = begins + time_at(config_.rate, bytes);
    return begins;
  }
  const NVLinkConfig config_;
  std::vector<Port> ports_;
};

}  // namespace verbena::jobs
