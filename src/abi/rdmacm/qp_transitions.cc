#include "abi/rdmacm/qp_transitions.h"

#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/translate.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

// Which parts of the QP take part. IBTA 11.2.5.2: a responder has resources, a requester retries.
bool is_responder(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV; }
bool is_requester(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND; }
bool is_reliable(ibv_qp_type type) { return is_requester(type) || is_responder(type); }

// Returns the rights of the peer, as Linux's cm_init_qp_init_attr() does for a device with FLUSH.
// Before the peer has asked or answered, it has none.
unsigned access_of(const IdObject& id) {
  if (!id.peer) return 0;
  const unsigned reads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                         abi::kAccessFlushGlobal | abi::kAccessFlushPersistent;
  return IBV_ACCESS_REMOTE_WRITE | (id.peer->responder_resources != 0 ? reads : 0u);
}

// As Linux's iw_cm_init_qp_attr().
void set_init_of_stream(ibv_qp_attr& attr, int& mask) {
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  mask |= IBV_QP_ACCESS_FLAGS;
}

void set_init(const IdObject& id, ibv_qp_attr& attr, int& mask) {
  attr.pkey_index = 0;
  attr.port_num = kPort;
  mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.is_datagram()) {
    attr.qkey = RDMA_UDP_QKEY;
    mask |= IBV_QP_QKEY;
    return;
  }
  attr.qp_access_flags = access_of(id);
  mask |= IBV_QP_ACCESS_FLAGS;
}

void set_rtr(const IdObject& id, const PeerAnswer& peer, ibv_qp_attr& attr, int& mask) {
  attr.ah_attr = id.path.address();
  attr.path_mtu = abi::to_ibv(id.path.mtu);
  attr.dest_qp_num = peer.qpn.value;
  attr.rq_psn = id.rq_psn.value();
  mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (!is_responder(id.transport())) return;
  attr.max_dest_rd_atomic = id.responder_resources;
  attr.min_rnr_timer = 0;  // the longest, as Linux has it
  mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void set_rts(const IdObject& id, const PeerAnswer& peer, ibv_qp_attr& attr, int& mask) {
  attr.sq_psn = peer.sq_psn.value();
  mask |= IBV_QP_SQ_PSN;
  if (!is_reliable(id.transport())) return;
  attr.timeout = id.options.ack_timeout != 0 ? id.options.ack_timeout : peer.ack_timeout;
  mask |= IBV_QP_TIMEOUT;
  if (!is_requester(id.transport())) return;
  attr.retry_cnt = peer.retry_count;
  attr.rnr_retry = peer.rnr_retry_count;
  attr.max_rd_atomic = id.initiator_depth;
  mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

int move_to(IdObject& id, ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  int mask = 0;
  if (!attributes_for(id, attr, mask)) return fail(EINVAL);
  return result_of(ibv_modify_qp(qp, &attr, mask));
}

int move_datagram_qp(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  const int mask = IBV_QP_STATE | (state == IBV_QPS_RTS ? IBV_QP_SQ_PSN : 0);
  return result_of(ibv_modify_qp(qp, &attr, mask));
}

}  // namespace

bool attributes_for(const IdObject& id, ibv_qp_attr& attr, int& mask) {
  mask = IBV_QP_STATE;
  if (id.place.device == nullptr) return false;
  if (attr.qp_state == IBV_QPS_INIT) {
    id.has_streams() ? set_init_of_stream(attr, mask) : set_init(id, attr, mask);
    return true;
  }
  if (id.has_streams()) {  // the connection manager makes these steps
    mask = 0;
    return attr.qp_state == IBV_QPS_RTR || attr.qp_state == IBV_QPS_RTS;
  }
  if (id.is_datagram() || !id.peer) return false;
  if (attr.qp_state == IBV_QPS_RTR) {
    set_rtr(id, *id.peer, attr, mask);
    return true;
  }
  if (attr.qp_state != IBV_QPS_RTS) return false;
  set_rts(id, *id.peer, attr, mask);
  return true;
}

int initialize_qp(IdObject& id, ibv_qp* qp) {
  if (move_to(id, qp, IBV_QPS_INIT) != 0) return -1;
  if (!id.is_datagram()) return 0;
  return move_datagram_qp(qp, IBV_QPS_RTR) != 0 ? -1 : move_datagram_qp(qp, IBV_QPS_RTS);
}

int connect_qp(IdObject& id) {
  if (id.qp == nullptr) return 0;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    if (move_to(id, id.qp, state) != 0) return -1;
  return 0;
}

int fail_qp(IdObject& id) {
  if (id.qp == nullptr) return 0;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return result_of(ibv_modify_qp(id.qp, &attr, IBV_QP_STATE));
}

int bring_up_and_confirm(IdObject& id) {
  if (!id.peer) return fail(EINVAL);
  id.responder_resources = id.peer->responder_resources;
  id.initiator_depth = id.peer->initiator_depth;
  if (connect_qp(id) != 0) return -1;
  return result_of(id.place.device->connections->ready_to_use(id.connection()));
}

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) try {
  if (id == nullptr || attr == nullptr || mask == nullptr) return fail(EINVAL);
  return attributes_for(IdObject::of(id), *attr, *mask) ? 0 : fail(EINVAL);
} catch (...) {
  return fail(errno_of_exception());
}
