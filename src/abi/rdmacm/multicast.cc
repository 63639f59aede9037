// Multicast. rdma_join_multicast(3), rdma_leave_multicast(3). The device attaches no QP to a
// multicast group (ibv_attach_mcast), so none can be joined.
#include "abi/rdmacm/results.h"
#include "abi/rdmacm/socket_endpoint.h"

#include <rdma/rdma_cma.h>

using namespace verbena::rdmacm;

int rdma_join_multicast(rdma_cm_id*, sockaddr* address, void*) {
  return fail(SocketEndpoint::from(address) ? EOPNOTSUPP : EINVAL);
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) {
  constexpr unsigned kBoth = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return fail(ENOTSUP);
  if (attr->comp_mask != kBoth || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
    return fail(EINVAL);
  return rdma_join_multicast(id, attr->addr, context);
}

int rdma_leave_multicast(rdma_cm_id*, sockaddr* address) {
  return fail(SocketEndpoint::from(address) ? EADDRNOTAVAIL : EINVAL);
}
