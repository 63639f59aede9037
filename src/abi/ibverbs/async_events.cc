#include "abi/ibverbs/async_events.h"

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/srq_object.h"

namespace verbena::abi {
namespace {

// Returns nullptr for an event of the port or the device: no call waits for its acknowledgement.
EventAccount* account_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: return &CQObject::of(event.element.cq).async_events;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: return &SRQObject::of(event.element.srq).async_events;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return &QPObject::of(event.element.qp).async_events;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_WQ_FATAL: return nullptr;
  }
  return nullptr;
}

}  // namespace

ibv_event_type to_ibv(AsyncEventType type) {
  switch (type) {
    case AsyncEventType::kQPFatal: return IBV_EVENT_QP_FATAL;
    case AsyncEventType::kQPRequestError: return IBV_EVENT_QP_REQ_ERR;
    case AsyncEventType::kQPAccessError: return IBV_EVENT_QP_ACCESS_ERR;
    case AsyncEventType::kCommunicationEstablished: return IBV_EVENT_COMM_EST;
    case AsyncEventType::kSQDrained: return IBV_EVENT_SQ_DRAINED;
    case AsyncEventType::kQPLastWQEReached: return IBV_EVENT_QP_LAST_WQE_REACHED;
    case AsyncEventType::kCQError: return IBV_EVENT_CQ_ERR;
    case AsyncEventType::kSRQError: return IBV_EVENT_SRQ_ERR;
    case AsyncEventType::kSRQLimitReached: return IBV_EVENT_SRQ_LIMIT_REACHED;
    case AsyncEventType::kPortActive: return IBV_EVENT_PORT_ACTIVE;
    case AsyncEventType::kPortError: return IBV_EVENT_PORT_ERR;
    case AsyncEventType::kGIDChange: return IBV_EVENT_GID_CHANGE;
    case AsyncEventType::kLIDChange: return IBV_EVENT_LID_CHANGE;
    case AsyncEventType::kPKeyChange: return IBV_EVENT_PKEY_CHANGE;
    case AsyncEventType::kSMChange: return IBV_EVENT_SM_CHANGE;
    case AsyncEventType::kClientReregister: return IBV_EVENT_CLIENT_REREGISTER;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::abi

using namespace verbena::abi;

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) try {
  const auto next = ContextObject::of(context).async_events->pop();
  if (!next) return fail_with_minus_one(next.error());
  *event = *next;
  return 0;
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

void ibv_ack_async_event(ibv_async_event* event) try {
  if (EventAccount* account = account_of(*event); account != nullptr) account->on_acknowledged(1);
} catch (...) {
  refuse(errno_of_exception());
}
