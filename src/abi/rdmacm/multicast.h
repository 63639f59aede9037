// The multicast groups that an ID has joined. rdma_join_multicast(3).
#pragma once

#include <vector>

#include "abi/rdmacm/socket_endpoint.h"

namespace verbena::rdmacm {

struct EventObject;
struct IdObject;

struct Membership {
  u64 number = 0;          // unlike those of the ID's other and earlier ones
  SocketEndpoint address;  // as the program named the group
  bool is_send_only = false;
  bool is_attached = false;  // the ID's QP; done when the program reads of the join
};

// The program reads that the ID has joined: its QP is attached. False: it has left again.
[[nodiscard]] bool on_read_join(EventObject& event);

// Before the ID's QP is destroyed.
void detach_qp(IdObject& id);

}  // namespace verbena::rdmacm
