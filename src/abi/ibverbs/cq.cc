// Completion queues. ibv_create_cq(3), ibv_resize_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3),
// ibv_modify_cq(3).
#include "abi/ibverbs/cq.h"

#include <algorithm>
#include <span>

#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/completion.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/undo.h"

namespace verbena::abi {
namespace {

// Room for the CQEs of one poll; filled by it, so not initialized here.
struct CQEBatch {
  static constexpr std::size_t kSize = 64;
  CQEBatch() {}
  union {
    std::array<CQE, kSize> cqes;
  };
};

int capacity_of(const CQObject& cq) {
  return static_cast<int>(cq.owner().enter()->capacity_of(cq.queue));
}

void forget_unread_events(CQObject& cq) {
  if (cq.channel != nullptr) {
    ChannelObject& channel = ChannelObject::of(cq.channel);
    cq.completion_events.on_settled(
        channel.ready->remove_if([&cq](const CQObject* ready) { return ready == &cq; }));
    channel.drop_user();
  }
  cq.async_events.on_settled(cq.owner().async_events->remove_if(
      [&cq](const ibv_async_event& event) { return concerns(event, cq.verbs()); }));
}

}  // namespace

host::EventDescriptor* CQObject::on_completion_event() {
  if (channel == nullptr) return nullptr;
  completion_events.on_queued();
  return ChannelObject::of(channel).ready->put(this);
}

void CQObject::on_async_event(const AsyncEvent& event) {
  async_events.on_queued();
  owner().async_events->push(to_ibv(event.type, {.cq = verbs()}));
}

CQObject* create_cq(ContextObject& owner, const CQRequest& request) {
  if (request.cqe == 0 || request.cqe > owner.config().limits.max_cqe) return fail(EINVAL);
  if (request.comp_vector >= static_cast<u32>(owner.context.num_comp_vectors)) return fail(EINVAL);
  auto cq = make<CQObject>();
  if (cq == nullptr) return fail(ENOMEM);
  cq->context = &owner.context;
  cq->channel = request.channel;
  cq->cq_context = request.cq_context;
  host::EventTarget* target = cq.get();
  const Result<CompletionQueue*> queue =
      owner.enter()->create_cq(request.cqe, target, request.on_overrun);
  if (!queue) return fail(queue.error());
  Undo made([&] { static_cast<void>(owner.enter()->destroy_cq(*queue)); });
  cq->queue = *queue;
  cq->cqe = capacity_of(*cq);
  checks::made(*cq, request.on_overrun);
  owner.cqs.insert(cq.get());
  made.keep();
  if (cq->channel != nullptr) ChannelObject::of(cq->channel).add_user();
  return cq.release();
}

Status withdraw(CQObject& cq) {
  if (const Status status = cq.owner().enter()->destroy_cq(cq.queue); status != Status::kOk)
    return status;
  cq.owner().adapter->wait_for_wakes();
  checks::unmade(cq);
  cq.owner().cqs.erase(&cq);
  forget_unread_events(cq);
  return Status::kOk;
}

int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc) try {
  CQObject& self = CQObject::of(cq);
  host::Adapter& adapter = *self.owner().adapter;
  CQEBatch batch;
  int taken = 0;
  while (taken < num_entries) {
    const std::span room =
        std::span(batch.cqes)
            .first(std::min(CQEBatch::kSize, static_cast<std::size_t>(num_entries - taken)));
    const u32 count =
        checks::active() ? checks::poll(self, room) : adapter.poll_cq(self.queue, room);
    for (const CQE& cqe : room.first(count)) to_ibv(cqe, wc[taken++]);
    if (count < room.size()) break;
  }
  return taken;
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

int request_notification(ibv_cq* cq, int solicited_only) try {
  const CQObject& self = CQObject::of(cq);
  self.owner().adapter->request_notification(
      self.queue, solicited_only != 0 ? NotifyOn::kSolicitedOnly : NotifyOn::kAnyCompletion);
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE) return refuse(EINVAL);
  const CQObject& self = CQObject::of(cq);
  self.owner().enter()->moderate_cq(
      self.queue, {.count = attr->moderate.cq_count, .period = us(attr->moderate.cq_period)});
  return 0;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) try {
  if (cqe <= 0 || comp_vector < 0) return fail(EINVAL);
  CQObject* cq =
      create_cq(ContextObject::of(context), {.cqe = static_cast<u32>(cqe),
                                             .cq_context = cq_context,
                                             .channel = channel,
                                             .comp_vector = static_cast<u32>(comp_vector)});
  return cq == nullptr ? nullptr : cq->verbs();
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_resize_cq(ibv_cq* cq, int cqe) try {
  const CQObject& self = CQObject::of(cq);
  if (cqe <= 0 || static_cast<u32>(cqe) > self.owner().config().limits.max_cqe)
    return refuse(EINVAL);
  const Status status = self.owner().enter()->resize_cq(self.queue, static_cast<u32>(cqe));
  if (status == Status::kOk) cq->cqe = capacity_of(self);
  if (status == Status::kOk) checks::resized(self);
  return refuse(status);
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_destroy_cq(ibv_cq* cq) try {
  CQObject& self = CQObject::of(cq);
  if (const Status status = withdraw(self); status != Status::kOk) return refuse(status);
  checks::wait_until_settled(self.completion_events, "completion events of a CQ");
  checks::wait_until_settled(self.async_events, "asynchronous events of a CQ");
  delete &self;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
