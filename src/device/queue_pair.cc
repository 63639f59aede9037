#include "device/queue_pair.h"

#include "device/shared_receive_queue.h"

namespace verbena {

QueuePair::QueuePair(const QPInit& granted, const QPAttributes& initial)
    : init(granted), attributes(initial) {
  if (init.srq == nullptr) own_receive_queue.emplace(init.receive);
}

EngineParts QueuePair::parts(ProtectionTable& memory) {
  const bool shared = init.srq != nullptr;
  return {.attributes = attributes,
          .memory = memory,
          .receive_queue = shared ? init.srq->queue() : *own_receive_queue,
          .shared_receive_queue = shared,
          .send_limits = init.send,
          .srq_pd = shared ? std::optional(init.srq->pd.id) : std::nullopt};
}

}  // namespace verbena
