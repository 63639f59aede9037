// XRCReceives: what an XRC target QP draws its receives from: the SRQs of its XRC domain. Every
// request names one by its number (XRCETH); it lends the request its receives and its PD, for the
// target has neither. IBTA Annex A14.
#pragma once

#include <optional>

#include "memory/protection_table.h"
#include "transport/receive_queue.h"

namespace verbena {

struct XRCReceiveQueue {
  ReceiveQueue* queue;
  PDId pd;
};

class XRCReceives {
 public:
  virtual ~XRCReceives() = default;
  // nullopt: the domain has no SRQ of that number (any more).
  [[nodiscard]] virtual std::optional<XRCReceiveQueue> find(u32 srq_number) const = 0;
};

}  // namespace verbena
