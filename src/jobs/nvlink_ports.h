// NVLinkPorts: the GPUs' ports to the switches of their nodes. A message takes its sender's port,
// then its receiver's, each for the time that its octets last, in the order in which messages were
// handed over; what has begun to leave the one arrives at the other a latency later. No packets, no
// loss: NVLink has credits, and its switch the same rate on each port.
#pragma once

#include <algorithm>
#include <vector>

#include "jobs/cluster.h"

namespace verbena::jobs {

// How long octets last, for any number of them.
[[nodiscard]] constexpr Duration time_at(Rate rate, u64 octets) {
  return ps(
      static_cast<i64>(static_cast<unsigned __int128>(octets) * 8'000'000'000'000 / rate.bps()));
}

class NVLinkPorts {
 public:
  NVLinkPorts(u32 ranks, const NVLinkConfig& config) : config_(config), ports_(ranks) {}

  // When a message that is handed over now has arrived as a whole.
  [[nodiscard]] Time send(u32 from, u32 to, u64 octets, Time now) {
    const Duration lasts = time_at(config_.rate, octets);
    const Time leaves = std::max(now, ports_[from].out_free);
    ports_[from].out_free = leaves + lasts;
    const Time begins = std::max(leaves + config_.latency, ports_[to].in_free);
    ports_[to].in_free = begins + lasts;
    return ports_[to].in_free;
  }

 private:
  struct Port {
    Time out_free, in_free;
  };
  const NVLinkConfig config_;
  std::vector<Port> ports_;
};

}  // namespace verbena::jobs
