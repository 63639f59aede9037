// XRCReceives: the SRQs of an XRC domain, from which an XRC target QP takes its receives. Every
// request names one by its number (XRCETH). The SRQ gives the request its receives and its PD,
// since the target has neither. IBTA Annex A14.
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
  // Returns nullopt if the domain has no SRQ of that number (any more).
  [[nodiscard]] virtual std::optional<XRCReceiveQueue> find(u32 srq_number) const = 0;
};

}  // namespace verbena
