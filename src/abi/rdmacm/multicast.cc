// Multicast. rdma_join_multicast(3), rdma_leave_multicast(3). A group needs nobody's leave: it is
// joined when a QP is attached to it, so the event is there when the call returns. The group's GID
// is its IP address, as RoCEv2 has it (A17).
#include "abi/rdmacm/multicast.h"

#include <algorithm>

#include "abi/ibverbs/translate.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/id_object.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

bool names_same(const SocketEndpoint& a, const SocketEndpoint& b) {
  return a.family == b.family && a.address == b.address;
}

auto find_membership(IdObject& id, const SocketEndpoint& group) {
  return std::ranges::find_if(
      id.memberships, [&group](const Membership& m) { return names_same(m.address, group); });
}

// What messages to the group leave from: the ID's own address, else the device's.
const GID* source_for(const IdObject& id, const GID& group) {
  const GID& own = id.place.address;
  if (!own.is_zero()) return own.is_ipv4() == group.is_ipv4() ? &own : nullptr;
  return id.place.device->gid_of_family(group.is_ipv4());
}

rdma_ud_param parameters_of(const IdObject& id, const GID& source, const GID& group) {
  const ConnectionPath path{.local = source,
                            .remote = group,
                            .local_gid_index = id.place.device->gid_index(source),
                            .traffic_class = id.options.traffic_class};
  rdma_ud_param ud{};
  ud.ah_attr = path.address();
  ud.qp_num = kMulticastQPN.value;
  ud.qkey = RDMA_UDP_QKEY;
  return ud;
}

int detach(IdObject& id, Membership& membership) {
  if (!std::exchange(membership.is_attached, false) || id.qp == nullptr) return 0;
  const ibv_gid gid = abi::to_ibv(membership.address.address);
  return ibv_detach_mcast(id.qp, &gid, 0);
}

int attach(IdObject& id, Membership& membership) {
  if (id.qp == nullptr || membership.is_send_only || membership.is_attached) return 0;
  const ibv_gid gid = abi::to_ibv(membership.address.address);
  const int error = ibv_attach_mcast(id.qp, &gid, 0);
  membership.is_attached = error == 0;
  return error;
}

int join(IdObject& id, const sockaddr* address, bool send_only, void* context) {
  const auto group = SocketEndpoint::from(address);
  if (!group || !group->address.is_multicast() || !id.is_datagram()) return fail(EINVAL);
  if (id.place.device == nullptr) return fail(ENODEV);
  const GID* const source = source_for(id, group->address);
  if (source == nullptr) return fail(EADDRNOTAVAIL);
  if (find_membership(id, *group) != id.memberships.end()) return fail(EADDRINUSE);
  id.memberships.push_back(
      {.number = ++id.last_membership, .address = *group, .is_send_only = send_only});
  auto event = std::make_unique<EventObject>(id, RDMA_CM_EVENT_MULTICAST_JOIN);
  event->param.ud = parameters_of(id, *source, group->address);
  event->param.ud.private_data = context;
  event->membership = id.last_membership;
  id.push(std::move(event));
  return complete(id);
}

}  // namespace

bool on_read_join(EventObject& event) {
  IdObject& id = event.owner;
  const auto membership = std::ranges::find(id.memberships, event.membership, &Membership::number);
  if (membership == id.memberships.end()) return false;
  if (const int error = attach(id, *membership); error != 0) {
    event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    event.status = -error;
  }
  return true;
}

void detach_qp(IdObject& id) {
  for (Membership& membership : id.memberships) (void)detach(id, membership);
}

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) try {
  if (id == nullptr) return fail(EINVAL);
  return join(IdObject::of(id), address, false, context);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) try {
  if (id == nullptr || attr == nullptr) return fail(EINVAL);
  constexpr unsigned kBoth = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return fail(ENOTSUP);
  if (attr->comp_mask != kBoth || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
    return fail(EINVAL);
  const bool send_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  return join(IdObject::of(id), attr->addr, send_only, context);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_leave_multicast(rdma_cm_id* id, sockaddr* address) try {
  if (id == nullptr) return fail(EINVAL);
  const auto group = SocketEndpoint::from(address);
  if (!group) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  const auto membership = find_membership(self, *group);
  if (membership == self.memberships.end()) return fail(EADDRNOTAVAIL);
  (void)detach(self, *membership);
  self.memberships.erase(membership);
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
