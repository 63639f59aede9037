// Connections from request to end. rdma_connect(3), rdma_accept(3), rdma_reject(3),
// rdma_establish(3), rdma_notify(3), rdma_disconnect(3).
#include <algorithm>

#include "abi/rdmacm/ece.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/qp_transitions.h"
#include "abi/rdmacm/rejecting.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

u8 max_responder_resources(const IdObject& id) { return id.place.device->max_responder_resources; }
u8 max_initiator_depth(const IdObject& id) { return id.place.device->max_initiator_depth; }

bool is_valid(const IdObject& id, const rdma_conn_param* param) {
  if (id.ps != RDMA_PS_TCP) return true;
  if (param == nullptr) return id.qp != nullptr;
  return (param->responder_resources == RDMA_MAX_RESP_RES ||
          param->responder_resources <= max_responder_resources(id)) &&
         (param->initiator_depth == RDMA_MAX_INIT_DEPTH ||
          param->initiator_depth <= max_initiator_depth(id));
}

std::span<const u8> data_of(const rdma_conn_param* param) {
  if (param == nullptr || param->private_data == nullptr) return {};
  return {static_cast<const u8*>(param->private_data), param->private_data_len};
}

// Returns the data that the ID was made with, then the data of `param`.
std::vector<u8> all_data(const IdObject& id, const rdma_conn_param* param) {
  std::vector<u8> data = id.connect_data;
  const std::span<const u8> more = data_of(param);
  data.insert(data.end(), more.begin(), more.end());
  return data;
}

QPN own_qpn(const IdObject& id, const rdma_conn_param* param) {
  return QPN{id.qp != nullptr ? id.qp->qp_num : param != nullptr ? param->qp_num : 0};
}

bool has_srq(const IdObject& id, const rdma_conn_param* param) {
  return id.qp != nullptr ? id.qp->srq != nullptr : param != nullptr && param->srq != 0;
}

CMTransport transport_of(const IdObject& id) {
  switch (id.transport()) {
    case IBV_QPT_UC: return CMTransport::kUC;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV: return CMTransport::kXRC;
    default: return CMTransport::kRC;
  }
}

// To kConnecting, before the peer can know: another thread may read its answer at once.
class Progress {
 public:
  explicit Progress(IdObject& id) : id_(id), before_(id.state) { id.state = IdState::kConnecting; }
  [[nodiscard]] int undone() const {
    id_.state = before_;
    return -1;
  }

 private:
  IdObject& id_;
  IdState before_;
};

u8 at_most_7(u8 count) { return std::min(count, kMaxRetryCount); }

Result<IPPrivateData> with_addresses(const IdObject& id, const rdma_conn_param* param,
                                     std::size_t room) {
  const SocketEndpoint source = id.source();
  return IPPrivateData::compose({.address = source.address, .port = source.port},
                                id.destination().address, all_data(id, param), room);
}

ServiceId service_of(const IdObject& id) {
  return service_id_of({.space = id.port_space(), .port = id.destination().port});
}

int resolve_service(IdObject& id, const rdma_conn_param* param) {
  const auto data = with_addresses(id, param, kIPSIDRDataSize);
  if (!data) return result_of(data.error());
  const auto asked =
      id.place.device->connections->sidr_request({.local_gid = id.path.local,
                                                  .remote_gid = id.path.remote,
                                                  .service_id = service_of(id),
                                                  .cm_response_timeout = kCMResponseTimeout,
                                                  .max_cm_retries = kMaxCMRetries,
                                                  .private_data = data->bytes()},
                                                 id);
  if (!asked) return result_of(asked.error());
  id.comm_id = asked->value;
  return 0;
}

// iWARP: private data is the program's alone, and the port is TCP's.
int request_stream(IdObject& id, const rdma_conn_param* param) {
  const std::vector<u8> data = all_data(id, param);
  const auto asked =
      id.place.device->connections->connect({.local_gid = id.path.local,
                                             .remote_gid = id.path.remote,
                                             .service_id = service_of(id),
                                             .qpn = own_qpn(id, param),
                                             .starting_psn = {},
                                             .responder_resources = id.responder_resources,
                                             .initiator_depth = id.initiator_depth,
                                             .private_data = data,
                                             .source_port = id.source().port},
                                            id);
  if (!asked) return result_of(asked.error());
  id.comm_id = asked->value;
  return 0;
}

int request_connection(IdObject& id, const rdma_conn_param* param) {
  if (id.has_streams()) return request_stream(id, param);
  const auto data = with_addresses(id, param, kIPConnectDataSize);
  if (!data) return result_of(data.error());
  const auto asked = id.place.device->connections->connect(
      {.local_gid = id.path.local,
       .remote_gid = id.path.remote,
       .service_id = service_of(id),
       .transport = transport_of(id),
       .qpn = own_qpn(id, param),
       .starting_psn = id.rq_psn,
       .responder_resources = id.responder_resources,
       .initiator_depth = id.initiator_depth,
       .retry_count = id.retry_count,
       .rnr_retry_count = param != nullptr ? at_most_7(param->rnr_retry_count) : kMaxRetryCount,
       .srq = has_srq(id, param),
       .end_to_end_flow_control = param != nullptr && param->flow_control != 0,
       .path_mtu = id.path.mtu,
       .flow_label = id.path.flow_label,
       .traffic_class = id.path.traffic_class,
       .hop_limit = id.path.hop_limit,
       .packet_life_time = id.path.packet_life_time,
       .remote_cm_response_timeout = kCMResponseTimeout,
       .local_cm_response_timeout = kCMResponseTimeout,
       .max_cm_retries = kMaxCMRetries,
       .ece = offer_of(id),
       .private_data = data->bytes()},
      id);
  if (!asked) return result_of(asked.error());
  id.comm_id = asked->value;
  return 0;
}

int reply_service(IdObject& id, const rdma_conn_param* param, cm::SIDRStatus status) {
  const Status replied =
      id.place.device->connections->sidr_reply(id.connection(), {.status = status,
                                                                 .qpn = own_qpn(id, param),
                                                                 .q_key = QKey{RDMA_UDP_QKEY},
                                                                 .private_data = data_of(param)});
  return result_of(replied);
}

int accept_datagrams(IdObject& id, const rdma_conn_param* param) {
  const Progress progress(id);
  if (reply_service(id, param, cm::SIDRStatus::kValid) != 0) return progress.undone();
  if (id.is_synchronous) acknowledge_own_event(id);
  return 0;
}

int accept_connection(IdObject& id, const rdma_conn_param* param) {
  if (!id.has_streams() && data_of(param).size() > cm::REP::kPrivateDataSize) return fail(EINVAL);
  const Progress progress(id);
  if (!id.has_streams() && connect_qp(id) != 0) return progress.undone();
  const Status accepted = id.place.device->connections->accept(
      id.connection(),
      {.qpn = own_qpn(id, param),
       .starting_psn = id.rq_psn,
       .responder_resources = id.responder_resources,
       .initiator_depth = id.initiator_depth,
       .rnr_retry_count = param != nullptr ? at_most_7(param->rnr_retry_count) : kMaxRetryCount,
       .srq = has_srq(id, param),
       .end_to_end_flow_control = param != nullptr && param->flow_control != 0,
       .ece = answer_of(id),
       .private_data = data_of(param)});
  if (accepted != Status::kOk) {
    (void)fail_qp(id);
    (void)progress.undone();
    return result_of(accepted);
  }
  return complete(id);
}

// The smaller of what the peer asks for and what the device has, where the program leaves it open.
void settle_depths_of_accept(IdObject& id, const rdma_conn_param* param) {
  id.initiator_depth = param == nullptr || param->initiator_depth == RDMA_MAX_INIT_DEPTH
                           ? std::min(id.initiator_depth, max_initiator_depth(id))
                           : param->initiator_depth;
  id.responder_resources = param == nullptr || param->responder_resources == RDMA_MAX_RESP_RES
                               ? std::min(id.responder_resources, max_responder_resources(id))
                               : param->responder_resources;
}

void settle_depths_of_connect(IdObject& id, const rdma_conn_param* param) {
  id.initiator_depth = param == nullptr || param->initiator_depth == RDMA_MAX_INIT_DEPTH
                           ? max_initiator_depth(id)
                           : param->initiator_depth;
  id.responder_resources = param == nullptr || param->responder_resources == RDMA_MAX_RESP_RES
                               ? max_responder_resources(id)
                               : param->responder_resources;
  id.retry_count = param == nullptr ? kMaxRetryCount : at_most_7(param->retry_count);
}

}  // namespace

int reject(IdObject& id, std::span<const u8> private_data, cm::RejectReason reason) {
  if (id.state != IdState::kRequested) return fail(EINVAL);
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<u8>(private_data.size());
  if (id.is_datagram()) return reply_service(id, &param, cm::SIDRStatus::kRejected);
  return result_of(id.place.device->connections->reject(
      id.connection(), {.reason = reason, .private_data = private_data}));
}

}  // namespace verbena::rdmacm

using namespace verbena;
using namespace verbena::rdmacm;

int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.state != IdState::kRouteResolved || !is_valid(self, param)) return fail(EINVAL);
  settle_depths_of_connect(self, param);
  const Progress progress(self);
  const int asked =
      self.is_datagram() ? resolve_service(self, param) : request_connection(self, param);
  if (asked != 0) return progress.undone();
  self.connect_data.clear();
  return complete(self);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.state != IdState::kRequested || !is_valid(self, param)) return fail(EINVAL);
  settle_depths_of_accept(self, param);
  return self.is_datagram() ? accept_datagrams(self, param) : accept_connection(self, param);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) try {
  if (id == nullptr) return fail(EINVAL);
  return reject(IdObject::of(id), {static_cast<const u8*>(private_data), private_data_len},
                cm::RejectReason::kConsumerReject);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_establish(rdma_cm_id* id) try {
  if (id == nullptr || id->qp != nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  return self.state == IdState::kConnecting ? bring_up_and_confirm(self) : fail(EINVAL);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.state != IdState::kConnecting || event != IBV_EVENT_COMM_EST) return fail(EINVAL);
  const Status status = self.place.device->connections->establish(self.connection());
  if (status == Status::kBusy) return 0;  // the RTU was faster
  if (status != Status::kOk) return result_of(status);
  self.push(RDMA_CM_EVENT_ESTABLISHED);
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

// A connection that is over already has had its event, or has it waiting: nothing to wait for.
int rdma_disconnect(rdma_cm_id* id) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (id->verbs == nullptr || fail_qp(self) != 0) return fail(EINVAL);
  if (self.state != IdState::kConnecting || self.is_datagram()) return fail(EINVAL);
  const Status ended = self.place.device->connections->disconnect(self.connection());
  return ended == Status::kOk ? complete(self) : 0;
} catch (...) {
  return fail(errno_of_exception());
}
