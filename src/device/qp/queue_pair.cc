#include "device/qp/queue_pair.h"

#include "device/objects/xrc_domain.h"

namespace verbena {

QueuePair::QueuePair(const QPInit& granted, const QPAttributes& initial)
    : init(granted), attributes(initial) {
  if (init.srq == nullptr) own_receive_queue.emplace(init.receive);
}

EngineParts QueuePair::parts(ProtectionTable& memory) {
  const bool shared = init.srq != nullptr;
  const bool xrc_target = init.xrcd != nullptr;
  return {.attributes = attributes,
          .memory = memory,
          .receive_queue = shared ? init.srq->queue() : *own_receive_queue,
          .shared_receive_queue = shared || xrc_target,
          .send_limits = init.send,
          .srq_pd = shared ? std::optional(init.srq->pd.id) : std::nullopt,
          .xrc_receives = init.xrcd,
          .congestion = congestion && congestion->wants_acks() ? &*congestion : nullptr,
          .send_copies = &copies.sends,
          .receive_copies = &copies.receives};
}

}  // namespace verbena
