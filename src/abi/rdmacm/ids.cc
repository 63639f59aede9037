// The life of IDs. rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3).
#include "abi/rdmacm/ids.h"

#include "abi/ibverbs/check/for_rdmacm.h"
#include "abi/ibverbs/make.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/multicast.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

bool is_port_space(rdma_port_space space) {
  return space == RDMA_PS_IPOIB || space == RDMA_PS_TCP || space == RDMA_PS_UDP ||
         space == RDMA_PS_IB;
}

}  // namespace

void given_to_program(const IdObject& id) { verbena_checks_created(&id, "rdma_cm ID"); }

IdObject* create_id(rdma_event_channel* channel, void* context, rdma_port_space space,
                    ibv_qp_type type) {
  ChannelObject* const events =
      channel != nullptr ? &ChannelObject::of(channel) : ChannelObject::create();
  if (events == nullptr) return nullptr;
  auto id = abi::make<IdObject>(*events, context, space, type);
  if (id == nullptr) {
    if (channel == nullptr) delete events;
    return abi::fail(ENOMEM);
  }
  id->is_synchronous = channel == nullptr;
  given_to_program(*id);
  return id.release();
}

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) try {
  if (id == nullptr || !is_port_space(space)) return fail(EINVAL);
  const bool is_datagram = space == RDMA_PS_IPOIB || space == RDMA_PS_UDP;
  IdObject* const made = create_id(channel, context, space, is_datagram ? IBV_QPT_UD : IBV_QPT_RC);
  if (made == nullptr) return -1;
  *id = made;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_destroy_id(rdma_cm_id* id) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  self.withdraw();
  leave_groups(self);
  acknowledge_own_event(self);
  verbena_checks_wait(&self.account, "events of an rdma_cm ID");
  delete &self;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.is_synchronous && channel == nullptr) return fail(EINVAL);
  ChannelObject* const to =
      channel != nullptr ? &ChannelObject::of(channel) : ChannelObject::create();
  if (to == nullptr) return -1;
  if (self.is_synchronous) acknowledge_own_event(self);
  ChannelObject& from = ChannelObject::of(self.channel);
  self.account.wait_until_settled(self.move_to(*to));
  if (self.is_synchronous) delete &from;
  self.is_synchronous = channel == nullptr;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
