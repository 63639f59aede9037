// Membership: a multicast group that an ID has joined. rdma_join_multicast(3).
#pragma once

#include "abi/rdmacm/socket_endpoint.h"

namespace verbena::rdmacm {

struct Membership {
  u64 number = 0;            // unlike those of the ID's other and earlier ones
  SocketEndpoint address{};  // as the program named the group
  bool is_send_only = false;
  bool is_attached = false;  // the ID's QP; done when the program reads of the join
  GID group{};               // as the verbs know it
  u16 mlid = 0;              // on InfiniBand, where the subnet's administration knows of it
};

}  // namespace verbena::rdmacm
