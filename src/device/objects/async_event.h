// AsyncEvent: an event that an application gets outside of its completions. IBTA Vol 1, 11.6.3.
#pragma once

#include "base/types.h"

namespace verbena {

class CompletionQueue;
class SharedReceiveQueue;
class QueuePair;

enum class AsyncEventType : u8 {
  kQPFatal,  // the QP is in Error, and no CQE and no other event of the QP says why
  kQPRequestError,
  kQPAccessError,
  kCommunicationEstablished,
  kSQDrained,
  kQPLastWQEReached,
  kCQError,
  kSRQError,
  kSRQLimitReached,
  kPortActive,
  kPortError,
  kGIDChange,
  kLIDChange,
  kPKeyChange,
  kSMChange,
  kClientReregister,
};

struct AsyncEvent {
  AsyncEventType type;
  QueuePair* qp = nullptr;
  CompletionQueue* cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
};

}  // namespace verbena
