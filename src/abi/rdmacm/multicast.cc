// Multicast. rdma_join_multicast(3), rdma_leave_multicast(3). On RoCE a group needs no permission:
// it is joined when a QP is attached to it, so the event is there when the call returns. The
// group's GID is its IP address, as RoCEv2 has it (A17). On InfiniBand the call asks the subnet's
// administration (subnet_group.h) and waits for it.
#include "abi/rdmacm/multicast.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "abi/ibverbs/translate.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/id_object.h"
#include "abi/rdmacm/results.h"
#include "abi/rdmacm/subnet_group.h"

namespace verbena::rdmacm {
namespace {

bool names_same(const SocketEndpoint& a, const SocketEndpoint& b) {
  return a.family == b.family && a.address == b.address;
}

auto find_membership(IdObject& id, const SocketEndpoint& group) {
  return std::ranges::find_if(
      id.memberships, [&group](const Membership& m) { return names_same(m.address, group); });
}

// Returns the source of messages to the group: the ID's own address, else the device's.
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
  const ibv_gid gid = abi::to_ibv(membership.group);
  return ibv_detach_mcast(id.qp, &gid, membership.mlid);
}

int attach(IdObject& id, Membership& membership) {
  if (id.qp == nullptr || membership.is_send_only || membership.is_attached) return 0;
  const ibv_gid gid = abi::to_ibv(membership.group);
  const int error = ibv_attach_mcast(id.qp, &gid, membership.mlid);
  membership.is_attached = error == 0;
  return error;
}

rdma_ud_param parameters_of(const SubnetGroup& group) {
  rdma_ud_param ud{};
  ud.ah_attr = group.address();
  ud.qp_num = kMulticastQPN.value;
  ud.qkey = group.q_key;
  return ud;
}

u8 join_state_of(const Membership& membership) {
  return membership.is_send_only ? MCMemberRecord::kSendOnlyMember : MCMemberRecord::kFullMember;
}

// A group that is there as soon as its members are.
rdma_ud_param join_by_address(const IdObject& id, Membership& membership, const GID& source) {
  membership.group = membership.address.address;
  return parameters_of(id, source, membership.group);
}

// Returns nullopt, and says in `error` why, when the subnet's administration refuses.
std::optional<rdma_ud_param> join_by_subnet(const IdObject& id, Membership& membership,
                                            int& error) {
  const auto group =
      join_subnet_group(*id.place.device, membership.address, join_state_of(membership));
  if (!group) {
    error = group.error().error;
    return std::nullopt;
  }
  membership.group = group->mgid;
  membership.mlid = group->mlid;
  return parameters_of(*group);
}

void leave_group(const IdObject& id, const Membership& membership) {
  if (membership.mlid != 0)
    leave_subnet_group(*id.place.device, membership.group, join_state_of(membership));
}

int join(IdObject& id, const sockaddr* address, bool send_only, void* context) {
  const auto group = SocketEndpoint::from(address);
  if (!group || !group->address.is_multicast() || !id.is_datagram()) return fail(EINVAL);
  if (id.place.device == nullptr) return fail(ENODEV);
  const bool is_on_subnet = verbena::rdmacm::is_on_subnet(*id.place.device);
  const GID* const source = is_on_subnet ? nullptr : source_for(id, group->address);
  if (!is_on_subnet && source == nullptr) return fail(EADDRNOTAVAIL);
  if (find_membership(id, *group) != id.memberships.end()) return fail(EADDRINUSE);
  Membership membership{
      .number = ++id.last_membership, .address = *group, .is_send_only = send_only};
  int error = 0;
  const std::optional<rdma_ud_param> ud = is_on_subnet ? join_by_subnet(id, membership, error)
                                                       : join_by_address(id, membership, *source);
  auto event = std::make_unique<EventObject>(
      id, ud ? RDMA_CM_EVENT_MULTICAST_JOIN : RDMA_CM_EVENT_MULTICAST_ERROR);
  event->status = -error;
  if (ud) event->param.ud = *ud;
  event->param.ud.private_data = context;
  event->membership = membership.number;
  if (ud) id.memberships.push_back(std::move(membership));
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

void leave_groups(IdObject& id) {
  for (const Membership& membership : id.memberships) leave_group(id, membership);
  id.memberships.clear();
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
  leave_group(self, *membership);
  self.memberships.erase(membership);
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
