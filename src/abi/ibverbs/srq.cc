// Shared receive queues. ibv_create_srq(3), ibv_modify_srq(3).
#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/srq_object.h"

namespace verbena::abi {
namespace {

ibv_srq_attr attributes_of(const SRQObject& srq) {
  auto session = srq.owner().enter();
  const ReceiveQueueLimits& limits = session->limits_of(srq.queue);
  return {.max_wr = limits.depth,
          .max_sge = limits.max_sge,
          .srq_limit = session->srq_limit(srq.queue)};
}

Status modify(SRQObject& srq, const ibv_srq_attr& attr, int mask) {
  auto session = srq.owner().enter();
  if ((mask & IBV_SRQ_MAX_WR) != 0)
    if (const Status status = session->resize_srq(srq.queue, attr.max_wr); status != Status::kOk)
      return status;
  if ((mask & IBV_SRQ_LIMIT) != 0) return session->set_srq_limit(srq.queue, attr.srq_limit);
  return Status::kOk;
}

}  // namespace

void SRQObject::on_async_event(const AsyncEvent& event) {
  async_events.on_queued();
  owner().async_events->push(to_ibv(event.type, {.srq = this}));
}

Status withdraw(SRQObject& srq) {
  ContextObject& owner = srq.owner();
  if (const Status status = owner.enter()->destroy_srq(srq.queue); status != Status::kOk)
    return status;
  owner.srqs.erase(&srq);
  srq.async_events.on_settled(owner.async_events->remove_if([&srq](const ibv_async_event& event) {
    return concerns(event, static_cast<ibv_srq*>(&srq));
  }));
  return Status::kOk;
}

// Only a basic SRQ: XRC and tag matching are not offered.
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* attr) {
  constexpr u32 kBasic = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  if ((attr->comp_mask & ~kBasic) != 0) return fail(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attr->srq_type != IBV_SRQT_BASIC)
    return fail(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) return fail(EINVAL);
  ibv_srq_init_attr basic{.srq_context = attr->srq_context, .attr = attr->attr};
  ibv_srq* srq = ibv_create_srq(attr->pd, &basic);
  attr->attr = basic.attr;
  return srq;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  if (pd == nullptr) return fail(EINVAL);
  auto srq = make<SRQObject>();
  if (srq == nullptr) return fail(ENOMEM);
  srq->context = pd->context;
  srq->srq_context = init->srq_context;
  srq->pd = pd;
  const ReceiveQueueLimits limits{.depth = init->attr.max_wr, .max_sge = init->attr.max_sge};
  host::EventTarget* target = srq.get();
  const Result<SharedReceiveQueue*> queue = srq->owner().enter()->create_srq(
      PDObject::of(pd).domain, limits, init->attr.srq_limit, target);
  if (!queue) return fail(queue.error());
  srq->queue = *queue;
  init->attr = attributes_of(*srq);
  srq->owner().srqs.insert(srq.get());
  return srq.release();
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return refuse(EINVAL);
  return refuse(modify(SRQObject::of(srq), *attr, mask));
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  *attr = attributes_of(SRQObject::of(srq));
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  SRQObject& self = SRQObject::of(srq);
  if (const Status status = withdraw(self); status != Status::kOk) return refuse(status);
  self.async_events.wait_until_settled();
  delete &self;
  return 0;
}
