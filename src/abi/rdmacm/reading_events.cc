// Carries out what an event means for its ID, when the program reads it and in its thread.
// rdma_get_cm_event(3), rdma_ack_cm_event(3).
#include <cstdlib>
#include <utility>

#include "abi/rdmacm/ece.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/ids.h"
#include "abi/rdmacm/late_readers.h"
#include "abi/rdmacm/multicast.h"
#include "abi/rdmacm/qp_transitions.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {

namespace {

void on_read_response(EventObject& event) {
  IdObject& id = event.owner;
  id.peer = event.answer;
  id.remote_ece = event.ece;
  if (id.qp == nullptr) return;  // the program does it
  if (settle_answer(id) == 0 && bring_up_and_confirm(id) == 0) {
    event.event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  event.event = RDMA_CM_EVENT_CONNECT_ERROR;
  event.status = -errno;
  (void)fail_qp(id);
  id.has_failed = true;
}

// Returns false if the program is not told after all. The listener may have moved to another
// channel while the request waited: the new ID goes where the listener is now.
bool on_read_request(EventObject& event) {
  IdObject& id = *event.request;
  (void)id.place.device->connections->take_request(id.connection());
  if (event.owner.is_synchronous) {
    ChannelObject* const own = ChannelObject::create();
    if (own == nullptr) return false;
    (void)id.move_to(*own);
    id.is_synchronous = true;
  } else {
    (void)id.move_to(event.owner.events_to());
  }
  event.id = event.request.release();
  given_to_program(id);
  return true;
}

bool on_read(EventObject& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST: return on_read_request(event);
    case RDMA_CM_EVENT_CONNECT_RESPONSE: on_read_response(event); return true;
    case RDMA_CM_EVENT_MULTICAST_JOIN: return on_read_join(event);
    case RDMA_CM_EVENT_REJECTED:
      if (event.owner.has_failed) return false;
      (void)fail_qp(event.owner);
      return true;
    case RDMA_CM_EVENT_DISCONNECTED: return !event.owner.has_failed;
    default: return true;
  }
}

void settle(EventObject* event) {
  event->owner.account.on_acknowledged(1);
  delete event;
}

}  // namespace

void acknowledge_own_event(IdObject& id) {
  if (id.event != nullptr) (void)rdma_ack_cm_event(std::exchange(id.event, nullptr));
}

int wait_for_event(IdObject& id) {
  acknowledge_own_event(id);
  if (rdma_get_cm_event(id.channel, &id.event) != 0) return -1;
  const int status = id.event->status;
  if (status == 0) return 0;
  if (id.event->event == RDMA_CM_EVENT_REJECTED) return fail(ECONNREFUSED);
  return fail(std::abs(status));
}

int complete(IdObject& id) { return id.is_synchronous ? wait_for_event(id) : 0; }

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) try {
  if (channel == nullptr || event == nullptr) return fail(EINVAL);
  for (;;) {
    const auto next = ChannelObject::of(channel).events->pop();
    if (!next) {
      if (next.error() == EBADF) wait_for_end_of_process();
      return fail(next.error());
    }
    if (on_read(**next)) {
      *event = *next;
      return 0;
    }
    settle(*next);
  }
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_ack_cm_event(rdma_cm_event* event) try {
  if (event == nullptr) return fail(EINVAL);
  settle(&EventObject::of(event));
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
