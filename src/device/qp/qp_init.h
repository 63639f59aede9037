// QPInit: what a queue pair is made with. IBTA Vol 1, 11.2.5.1 (Create QP).
#pragma once

#include "device/objects/protection_domain.h"
#include "transport/qp_attributes.h"
#include "transport/receive_queue.h"
#include "transport/send_queue.h"

namespace verbena {

class CompletionQueue;
class SharedReceiveQueue;
class XRCDomain;

// An XRC initiator has no receive queue: `receive_cq`, `srq` and `receive` are ignored. An XRC
// target has neither queue, nor a PD: only `xrcd` counts. Annex A14.
struct QPInit {
  QPType type = QPType::kRC;
  ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  XRCDomain* xrcd = nullptr;     // XRC target only
  SendQueueLimits send{};        // as asked; the QP's own limits are at least this
  ReceiveQueueLimits receive{};  // ignored with an SRQ
  bool signal_all = false;
  bool block_own_multicast = false;  // UD: gets no copy of what this device's QPs send to a group
  void* user = nullptr;              // the caller's own; comes back in events
};

}  // namespace verbena
