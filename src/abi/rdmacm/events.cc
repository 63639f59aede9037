#include "abi/rdmacm/events.h"

#include <algorithm>
#include <cstring>

#include "abi/rdmacm/ece.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {

EventObject::EventObject(IdObject& about, int type_of_it, int status_of_it)
    : rdma_cm_event{}, owner(about), type(type_of_it) {
  rdma_cm_event::id = &about;
  std::memcpy(&event, &type, sizeof event);
  rdma_cm_event::status = status_of_it;
}

EventObject::~EventObject() = default;

// rdma_conn_param cannot hold more.
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

// One for each report of a CMAgent.
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
  // As Linux's cma_iw_handler() reports the errors of a connection.
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

}  // namespace verbena::rdmacm
