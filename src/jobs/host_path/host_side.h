// HostSide: one direction of a host's path, in use: messages go through in the order in which they
// come. First (sending) or last (receiving) they are copied whole, one after another; what passes
// them on takes them at its rate, which all messages of the host share.
#pragma once

#include <algorithm>

#include "jobs/host_path/host_path.h"
#include "jobs/nvlink_ports.h"

namespace verbena::jobs {

class HostSide {
 public:
  // When the NIC begins with a message that the GPU has now.
  [[nodiscard]] Time send(const HostPathSums& path, u64 octets, Time now) {
    const Time copied = copy(path, octets, now);
    const Time begins = std::max(copied + path.latency, through_free_);
    through_free_ = begins + duration_of(path.through, octets);
    return begins;
  }
  // When the GPU has a message whose last octet the NIC has now, after a line of that rate.
  [[nodiscard]] Time receive(const HostPathSums& path, u64 octets, Rate line, Time now) {
    const Time first = now - time_at(line, octets);
    through_free_ = std::max(first, through_free_) + duration_of(path.through, octets);
    return copy(path, octets, std::max(now, through_free_) + path.latency);
  }

 private:
  static Duration duration_of(Rate rate, u64 octets) {
    return rate == Rate::unlimited() ? Duration() : time_at(rate, octets);
  }
  Time copy(const HostPathSums& path, u64 octets, Time now) {
    if (path.whole == Rate::unlimited()) return now;
    copy_free_ = std::max(now, copy_free_) + duration_of(path.whole, octets);
    return copy_free_;
  }
  Time copy_free_, through_free_;
};

}  // namespace verbena::jobs
