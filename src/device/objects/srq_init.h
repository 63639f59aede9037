// SRQInit: what a shared receive queue is made with. IBTA Vol 1, 11.2.3.1; Annex A14 for XRC.
#pragma once

#include <optional>

#include "device/objects/protection_domain.h"
#include "transport/receive_queue.h"

namespace verbena {

class CompletionQueue;
class XRCDomain;

struct SRQInit {
  ProtectionDomain* pd = nullptr;
  ReceiveQueueLimits limits{};    // as asked; the SRQ's own are at least this
  XRCDomain* xrcd = nullptr;      // of an XRC SRQ, which has both;
  CompletionQueue* cq = nullptr;  // where its receives complete, for XRC targets have no CQ
  void* user = nullptr;           // the caller's own; comes back in events
};

// A change of both takes effect whole or not at all.
struct SRQModify {
  std::optional<u32> depth{}, limit{};
};

}  // namespace verbena
