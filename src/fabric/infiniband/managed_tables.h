// ManagedTables: forwarding tables that a subnet manager has written, for packets of live
// processes, which are forwarded by their DLID. IBTA Vol 1, 18.2.4.3 (linear forwarding), 18.2.4.4
// (multicast). A packet without an entry is dropped.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"
#include "fabric/topology.h"
#include "wire/ib/lid_address.h"

namespace verbena::fabric {

class ManagedTables {
 public:
  static constexpr u16 kNoPort = 0xffff;

  explicit ManagedTables(u32 nodes) : of_node_(nodes) {}

  // Ports count from 0. `unicast`: by LID, as far as there are entries; `multicast`: by MLID -
  // kFirstMulticastLID.
  void set(NodeIndex node, std::vector<u16> unicast, std::vector<std::vector<u16>> multicast) {
    of_node_[node] = {std::move(unicast), std::move(multicast)};
  }
  // The ports by which a packet leaves the switch, but for that by which it came.
  [[nodiscard]] std::span<const u16> ports(NodeIndex node, u16 dlid) const {
    const Tables& tables = of_node_[node];
    if (dlid >= kFirstMulticastLID) {
      const u32 group = dlid - u32{kFirstMulticastLID};
      return group < tables.multicast.size() ? std::span(tables.multicast[group])
                                             : std::span<const u16>();
    }
    if (dlid >= tables.unicast.size() || tables.unicast[dlid] == kNoPort) return {};
    return {&tables.unicast[dlid], 1};
  }

 private:
  struct Tables {
    std::vector<u16> unicast;
    std::vector<std::vector<u16>> multicast;
  };
  std::vector<Tables> of_node_;
};

}  // namespace verbena::fabric
