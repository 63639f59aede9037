// HostSide: one direction of a host's path, in use: messages go through in the order in which they
// come. First (sending) or last (receiving) they are copied whole, one after another; what passes
// them on takes them at its rate, which all messages of the host share. Where that is as fast as
// the line, the NIC has all messages at once and takes turns among them, as it has them without a
// path: else a path would put them in a row, and the first would leave earlier than without one.
#pragma once

#include <algorithm>

#include "jobs/host_path/host_path.h"
#include "jobs/nvlink_ports.h"

namespace verbena::jobs {

class HostSide {
 public:
  // Returns when the NIC, with a line of rate `line`, begins with a message that the GPU has now.
  [[nodiscard]] Time send(const HostPathSums& path, u64 bytes, Rate line, Time now) {
    const Time copied = copy(path, bytes, now);
    if (path.through >= line) return copied + path.latency;
    const Time begins = std::max(copied + path.latency, through_free_);
    through_free_ = begins + duration_of(path.through, bytes);
    return begins;
  }
  // Returns when the GPU has a message whose last byte the NIC has now, after a line of rate
  // `line`.
  [[nodiscard]] Time receive(const HostPathSums& path, u64 bytes, Rate line, Time now) {
    const Time first = now - time_at(line, bytes);
    through_free_ = std::max(first, through_free_) + duration_of(path.through, bytes);
    return copy(path, bytes, std::max(now, through_free_) + path.latency);
  }

 private:
  static Duration duration_of(Rate rate, u64 bytes) {
    return rate == Rate::unlimited() ? Duration() : time_at(rate, bytes);
  }
  Time copy(const HostPathSums& path, u64 bytes, Time now) {
    if (path.whole == Rate::unlimited()) return now;
    copy_free_ = std::max(now, copy_free_) + duration_of(path.whole, bytes);
    return copy_free_;
  }
  Time copy_free_, through_free_;
};

}  // namespace verbena::jobs
