// Shared receive queues. ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3).
#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/srq_object.h"
#include "abi/ibverbs/undo.h"
#include "abi/ibverbs/xrcd_object.h"

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
  SRQModify change;
  if ((mask & IBV_SRQ_MAX_WR) != 0) change.depth = attr.max_wr;
  if ((mask & IBV_SRQ_LIMIT) != 0) change.limit = attr.srq_limit;
  return srq.owner().enter()->modify_srq(srq.queue, change);
}

struct SRQRequest {
  ibv_context* context = nullptr;
  void* srq_context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_xrcd* xrcd = nullptr;  // XRC only, and then both
  ibv_cq* cq = nullptr;
};

bool are_of(const ibv_context* context, const SRQRequest& xrc) {
  return xrc.pd != nullptr && xrc.pd->context == context && xrc.xrcd != nullptr &&
         xrc.xrcd->context == context && xrc.cq != nullptr && xrc.cq->context == context;
}

// `attr` becomes what was granted; its limit is ignored. nullptr and errno on failure.
ibv_srq* create(const SRQRequest& request, ibv_srq_attr& attr) {
  auto srq = make<SRQObject>();
  if (srq == nullptr) return fail(ENOMEM);
  srq->context = request.context;
  srq->srq_context = request.srq_context;
  srq->pd = request.pd;
  if (request.xrcd != nullptr) srq->xrcd = &XRCDObject::of(request.xrcd);
  host::EventTarget* target = srq.get();
  const Result<SharedReceiveQueue*> queue = srq->owner().enter()->create_srq(
      {.pd = PDObject::of(request.pd).domain,
       .limits = {.depth = attr.max_wr, .max_sge = attr.max_sge},
       .xrcd = srq->xrcd != nullptr ? srq->xrcd->open->domain() : nullptr,
       .cq = request.cq != nullptr ? CQObject::of(request.cq).queue : nullptr,
       .user = target});
  if (!queue) return fail(queue.error());
  Undo made([&] { static_cast<void>(srq->owner().enter()->destroy_srq(*queue)); });
  srq->queue = *queue;
  attr = attributes_of(*srq);
  checks::made(*srq, srq->owner().enter()->number_of(srq->queue));
  srq->owner().srqs.insert(srq.get());
  made.keep();
  if (srq->xrcd != nullptr) ++srq->xrcd->users;
  srq->pd_use = Use(PDObject::of(srq->pd).users);
  return srq.release();
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
  if (srq.xrcd != nullptr) --srq.xrcd->users;
  checks::unmade(srq);
  owner.srqs.erase(&srq);
  srq.async_events.on_settled(owner.async_events->remove_if([&srq](const ibv_async_event& event) {
    return concerns(event, static_cast<ibv_srq*>(&srq));
  }));
  return Status::kOk;
}

// XRC or basic; tag matching is not offered.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  constexpr u32 kBasic = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  constexpr u32 kXRC = kBasic | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const bool typed = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  const bool xrc = typed && attr->srq_type == IBV_SRQT_XRC;
  if ((attr->comp_mask & ~kXRC) != 0) return fail(EOPNOTSUPP);
  if (typed && !xrc && attr->srq_type != IBV_SRQT_BASIC) return fail(EOPNOTSUPP);
  const u32 needed = xrc ? kXRC : u32{IBV_SRQ_INIT_ATTR_PD};
  if ((attr->comp_mask & needed) != needed) return fail(EINVAL);
  SRQRequest request{.context = context,
                     .srq_context = attr->srq_context,
                     .pd = attr->pd,
                     .xrcd = xrc ? attr->xrcd : nullptr,
                     .cq = xrc ? attr->cq : nullptr};
  if (xrc && !are_of(context, request)) return fail(EINVAL);
  return create(request, attr->attr);
}

int get_srq_num(ibv_srq* srq, uint32_t* srq_num) {
  const SRQObject& self = SRQObject::of(srq);
  if (self.xrcd == nullptr) return refuse(EINVAL);
  *srq_num = self.owner().enter()->number_of(self.queue);
  return 0;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) try {
  if (pd == nullptr) return fail(EINVAL);
  return create({.context = pd->context, .srq_context = init->srq_context, .pd = pd}, init->attr);
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) try {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return refuse(EINVAL);
  return refuse(modify(SRQObject::of(srq), *attr, mask));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) try {
  *attr = attributes_of(SRQObject::of(srq));
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_destroy_srq(ibv_srq* srq) try {
  SRQObject& self = SRQObject::of(srq);
  if (const Status status = withdraw(self); status != Status::kOk) return refuse(status);
  checks::wait_until_settled(self.async_events, "asynchronous events of an SRQ");
  delete &self;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
