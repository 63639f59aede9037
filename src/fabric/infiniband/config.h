// InfiniBandConfig: the configuration of an InfiniBand subnet: virtual lanes and their buffers,
// switches, routes, and congestion control. IBTA Vol 1, 7 (link layer), 14 (subnet management),
// annex A10.
#pragma once

#include <array>
#include <string_view>

#include "base/check.h"
#include "base/rate.h"
#include "base/types.h"
#include "fabric/egress_queues.h"
#include "fabric/link.h"
#include "fabric/technology.h"

namespace verbena::fabric {

inline constexpr u32 kVirtualLanes = kPriorities;  // of data, at most: 1, 2, 4 or 8. IBTA 7.6.1

// RoutingEngine: how forwarding tables are computed; the names are those of OpenSM.
enum class RoutingEngine : u8 {
  kFatTree,   // up a tree by the destination's number, the same way for all who send to it
  kUpDown,    // never up after down: no deadlock, whatever the topology
  kMinHop,    // the shortest way, of equal ones that with the fewest destinations
  kAdaptive,  // the shortest ways; of equal ones each packet takes that with the shortest queue
};
inline constexpr std::array kRoutingEngines = {RoutingEngine::kFatTree, RoutingEngine::kUpDown,
                                               RoutingEngine::kMinHop, RoutingEngine::kAdaptive};
[[nodiscard]] constexpr std::string_view name_of(RoutingEngine engine) {
  switch (engine) {
    case RoutingEngine::kFatTree: return "fat_tree";
    case RoutingEngine::kUpDown: return "up_down";
    case RoutingEngine::kMinHop: return "min_hop";
    case RoutingEngine::kAdaptive: return "adaptive";
  }
  CHECK_UNREACHABLE();
}

// Sizes on the link.
inline constexpr u16 kLRHBytes = 8;
inline constexpr u32 kLocalOverheadBytes = 8 + 4 + 2;  // LRH, ICRC, VCRC. IBTA 7.7, 7.8
inline constexpr u32 kMostHeaderBytes = 12 + 16 + 4;   // BTH, RETH, ImmDt
// A flow control packet, IBTA 7.9.4: six bytes, and a delimiter on either side.
inline constexpr u16 kFlowControlBytes = 8;
inline constexpr u32 kLIDs = 0xbfff;  // unicast, of a subnet. IBTA 4.1.3

// Switches mark packets (FECN) of a lane whose queue is above a threshold and that is no victim of
// another switch: credits are there. IBTA A10.2.1. With these defaults, and those of IBCC, the
// victim in infiniband_test.cc takes a third of the time that it takes without.
struct FECNConfig {
  bool enabled = false;
  u8 threshold = 8;       // Threshold: 1 (marks least) .. 15: 16 - threshold sixteenths of a buffer
  u16 marking_rate = 15;  // Marking_Rate: packets that are let off between two that are marked
};

struct InfiniBandConfig {
  u32 lanes = kVirtualLanes;
  // The lane of a service level, for every link of the subnet. IBTA 7.6.6. Below `lanes`.
  std::array<u8, kPriorities> sl_to_vl{0, 1, 2, 3, 4, 5, 6, 7};
  // VL arbitration, IBTA 7.6.9: lanes of the high-priority table go first; the weights of the
  // others, as bytes. 0: a packet at a time.
  QueueDiscipline arbitration{};
  u32 buffer_bytes = 0;         // of each port and lane; 0: what its link needs
  u32 credit_update_bytes = 0;  // freed before the neighbour is told of it; 0: 1/8 of the buffer
  u32 mtu_bytes = 4096;         // of payload, at most
  RoutingEngine routing = RoutingEngine::kUpDown;
  bool cuts_through = true;
  Duration latency = switch_latency_of(Technology::kInfiniBand);  // head in to head out
  FECNConfig fecn{};

  [[nodiscard]] u32 longest_packet() const {
    return mtu_bytes + kMostHeaderBytes + kLocalOverheadBytes;
  }
};

}  // namespace verbena::fabric
