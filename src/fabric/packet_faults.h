// PacketFaults: the filters of the live device (faults/filter.h) on a link of a simulated network.
// The filter decides about a packet where the link ends. Directions are those of one node of the
// link, as if the rules were that node's NIC's: kTransmit is the traffic that it sends. A corrupted
// packet is lost: the next port checks the FCS. Each direction has a filter of its own, and counts
// (nth, every, count) by itself, so that nothing depends on the actions of other nodes.
#pragma once

#include <string>
#include <vector>

#include "fabric/frame.h"
#include "fabric/network_faults.h"
#include "faults/filter.h"

namespace verbena::fabric {

// Returns the part of the rules that a simulated link cannot do; "" if it can do all.
[[nodiscard]] std::string refusal_of(const std::vector<faults::Rule>& rules);

class PacketFilter {
 public:
  PacketFilter(std::vector<faults::Rule> rules, faults::Direction direction, u64 seed)
      : filter_(std::move(rules), seed, Time()), direction_(direction) {}

  // `sender`: the QPN of the frame's sender. Addresses are those of nodes.
  [[nodiscard]] faults::Verdict judge(const Frame& frame, QPN sender,
                                      const std::vector<u32>& addresses, Time now);

 private:
  faults::FaultFilter filter_;
  faults::Direction direction_;
};

}  // namespace verbena::fabric
