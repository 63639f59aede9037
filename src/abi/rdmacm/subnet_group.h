// Multicast groups of an InfiniBand subnet, which its administration creates, and lets ports join
// and leave. IBTA Vol 1, 15.2.5.17. A group's MGID is made of its IP address and partition as
// Linux's rdma_cm does it; an MGID that a program names is taken as it is.
#pragma once

#include "abi/rdmacm/device_table.h"
#include "abi/rdmacm/socket_endpoint.h"
#include "host/os/error.h"
#include "wire/ib/mc_member_record.h"

namespace verbena::rdmacm {

struct SubnetGroup {
  GID mgid;
  u16 mlid = 0;
  u32 q_key = 0;
  u8 sl = 0;
  [[nodiscard]] ibv_ah_attr address() const;
};

// Whether the device's port is one of an InfiniBand subnet.
[[nodiscard]] bool is_on_subnet(const OpenDevice& device);
[[nodiscard]] GID mgid_of(const SocketEndpoint& group, u16 p_key);
// Waits for the answer. Errors as of ask_subnet_administration().
[[nodiscard]] host::Expected<SubnetGroup> join_subnet_group(const OpenDevice& device,
                                                            const SocketEndpoint& group,
                                                            u8 join_state);
void leave_subnet_group(const OpenDevice& device, const GID& mgid, u8 join_state);

}  // namespace verbena::rdmacm
