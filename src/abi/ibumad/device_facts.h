// DeviceFacts: the facts that libibumad reports about the devices that this process sees. Inside an
// InfiniBand fabric there is one device, and each call asks its server, because a subnet manager
// changes ports at any time. Elsewhere the facts are the files below /sys/class/infiniband, which
// `verbena run` redirects to its own; so a RoCE device is listed as rdma-core's libibumad lists it.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace verbena::abi::umad {

struct PortFacts {
  int number = 1;
  std::string link_layer;
  u32 lid = 0, lmc = 0, sm_lid = 0, sm_sl = 0;
  u32 state = 0, physical_state = 0;  // codes of PortInfo
  u32 rate = 0;                       // Gb/s, rounded down
  u32 capability_mask = 0;
  u64 gid_prefix = 0, guid = 0;
  std::vector<u16> p_keys;
};

struct DeviceFacts {
  std::string name, firmware, type, hardware;
  u8 node_type = 1;  // enum ibv_node_type
  u64 node_guid = 0, system_guid = 0;
  std::vector<PortFacts> ports;  // by number
};

// In the order of their names. Empty: there is none.
[[nodiscard]] std::vector<DeviceFacts> devices();

}  // namespace verbena::abi::umad
