#include "abi/rdmacm/events.h"

#include <algorithm>
#include <cstring>

#include "abi/rdmacm/ece.h"
#include "abi/rdmacm/ids.h"
#include "abi/rdmacm/late_readers.h"
#include "abi/rdmacm/qp_transitions.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {

EventObject::EventObject(IdObject& about, int type_of_it, int status_of_it)
    : rdma_cm_event{}, owner(about), type(type_of_it) {
  rdma_cm_event::id = &about;
  std::memcpy(&event, &type, sizeof event);
  rdma_cm_event::status = status_of_it;
}

EventObject::~EventObject() = default;

// rdma_conn_param cannot tell of more.
void EventObject::set_connection_data(std::span<const u8> private_data) {
  private_data = private_data.first(std::min(private_data.size(), data_.size()));
  std::ranges::copy(private_data, data_.begin());
  param.conn.private_data = data_.data();
  param.conn.private_data_len = static_cast<u8>(private_data.size());
}

void EventObject::set_datagram_data(std::span<const u8> private_data) {
  std::ranges::copy(private_data, data_.begin());
  param.ud.private_data = data_.data();
  param.ud.private_data_len = static_cast<u8>(private_data.size());
}

namespace {

std::unique_ptr<EventObject> make(IdObject& id, int type, int status = 0) {
  return std::make_unique<EventObject>(id, type, status);
}

bool is_unreachable(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

// One for each thing that a CMAgent tells.
struct Translator {
  IdObject& id;
  using Made = std::unique_ptr<EventObject>;

  Made operator()(const ReplyReceived& reply) const {
    Made made = make(id, RDMA_CM_EVENT_CONNECT_RESPONSE);
    made->set_connection_data(reply.rep.private_data);
    made->answer = PeerAnswer::from(reply.rep, id.path, id.retry_count);
    made->ece = reply.ece;
    rdma_conn_param& conn = made->param.conn;
    conn.responder_resources = made->answer->responder_resources;
    conn.initiator_depth = made->answer->initiator_depth;
    conn.flow_control = reply.rep.end_to_end_flow_control ? 1 : 0;
    conn.rnr_retry_count = reply.rep.rnr_retry_count;
    conn.srq = reply.rep.srq ? 1 : 0;
    conn.qp_num = qpn_of(reply.rep).value;
    return made;
  }
  Made operator()(const Established&) const { return make(id, RDMA_CM_EVENT_ESTABLISHED); }
  Made operator()(const Rejected& rejected) const {
    Made made = make(id, RDMA_CM_EVENT_REJECTED, static_cast<int>(rejected.rej.reason));
    made->set_connection_data(rejected.rej.private_data);
    return made;
  }
  Made operator()(const Unreachable&) const {
    return make(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  }
  Made operator()(const Disconnected& end) const {
    const bool is_timeout = end.cause == DisconnectCause::kNoReply;
    return make(id, RDMA_CM_EVENT_DISCONNECTED, is_timeout ? -ETIMEDOUT : 0);
  }
  Made operator()(const TimeWaitExit&) const { return make(id, RDMA_CM_EVENT_TIMEWAIT_EXIT); }
  Made operator()(const SIDRReply& reply) const {
    if (reply.rep.status != cm::SIDRStatus::kValid)
      return make(id, RDMA_CM_EVENT_UNREACHABLE, static_cast<int>(reply.rep.status));
    Made made = make(id, RDMA_CM_EVENT_ESTABLISHED);
    made->set_datagram_data(reply.rep.private_data);
    made->param.ud.ah_attr = id.path.address();
    made->param.ud.qp_num = reply.rep.qpn.value;
    made->param.ud.qkey = reply.rep.q_key.value;
    return made;
  }
  Made operator()(const StreamEstablished& stream) const {
    Made made = make(id, RDMA_CM_EVENT_ESTABLISHED);
    made->set_connection_data(stream.private_data);
    made->param.conn.responder_resources = stream.responder_resources;
    made->param.conn.initiator_depth = stream.initiator_depth;
    return made;
  }
  // As Linux's cma_iw_handler() tells the errors of a connection.
  Made operator()(const StreamRefused& refused) const {
    const int type = refused.error == ECONNREFUSED   ? int{RDMA_CM_EVENT_REJECTED}
                     : is_unreachable(refused.error) ? int{RDMA_CM_EVENT_UNREACHABLE}
                                                     : int{RDMA_CM_EVENT_CONNECT_ERROR};
    Made made = make(id, type, -refused.error);
    made->set_connection_data(refused.private_data);
    return made;
  }
  Made operator()(const StreamEnded&) const { return make(id, RDMA_CM_EVENT_DISCONNECTED); }
  Made operator()(const StreamRequest&) const { return nullptr; }
  Made operator()(const ReceiptAcknowledged&) const { return nullptr; }
  Made operator()(const ConnectRequest&) const { return nullptr; }  // a listener's: on_request()
  Made operator()(const SIDRRequest&) const { return nullptr; }
};

}  // namespace

std::unique_ptr<EventObject> event_of(IdObject& id, const CMEvent& news) {
  return std::visit(Translator{id}, news.what);
}

std::unique_ptr<EventObject> event_of_request(IdObject& listener, std::unique_ptr<IdObject> made,
                                              const cm::REQ& req,
                                              std::span<const u8> private_data) {
  auto request = make(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
  request->set_connection_data(private_data);
  rdma_conn_param& conn = request->param.conn;
  conn.responder_resources = req.initiator_depth;
  conn.initiator_depth = req.responder_resources;
  conn.flow_control = req.end_to_end_flow_control ? 1 : 0;
  conn.retry_count = req.retry_count;
  conn.rnr_retry_count = req.rnr_retry_count;
  conn.srq = req.srq ? 1 : 0;
  conn.qp_num = req.local_qpn.value;
  request->listen_id = &listener;
  request->request = std::move(made);
  return request;
}

std::unique_ptr<EventObject> event_of_request(IdObject& listener, std::unique_ptr<IdObject> made,
                                              const StreamRequest& asked) {
  auto request = make(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
  request->set_connection_data(asked.private_data);
  request->param.conn.responder_resources = asked.initiator_depth;
  request->param.conn.initiator_depth = asked.responder_resources;
  request->listen_id = &listener;
  request->request = std::move(made);
  return request;
}

std::unique_ptr<EventObject> event_of_request(IdObject& listener, std::unique_ptr<IdObject> made,
                                              std::span<const u8> private_data) {
  auto request = make(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
  request->set_datagram_data(private_data);
  request->listen_id = &listener;
  request->request = std::move(made);
  return request;
}

// --- reading

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

// False: the program is not told after all. The listener may have moved to another channel while
// the request waited: the new ID goes where the listener is now.
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
