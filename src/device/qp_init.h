// QPInit: what a queue pair is made with. IBTA Vol 1, 11.2.5.1 (Create QP).
#pragma once

#include "device/protection_domain.h"
#include "transport/qp_attributes.h"
#include "transport/receive_queue.h"
#include "transport/send_queue.h"

namespace verbena {

class CompletionQueue;
class SharedReceiveQueue;

struct QPInit {
  QPType type = QPType::kRC;
  ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  SendQueueLimits send;        // as asked; the QP's own limits are at least this
  ReceiveQueueLimits receive;  // ignored with an SRQ
  bool signal_all = false;
  void* user = nullptr;  // the caller's own; comes back in events
};

}  // namespace verbena
