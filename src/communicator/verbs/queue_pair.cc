#include "communicator/verbs/queue_pair.h"

#include <algorithm>
#include <cstring>

namespace verbena::coll {
namespace {

constexpr u8 kRetries = 7, kRNRRetriesForever = 7, kRNRTimer = 12;
constexpr u8 kHopLimit = 64;

bool is_ethernet_address(const QPAddress& address) { return address.lid == 0; }

Expected<void> modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask, const char* state,
                      const std::string& who) {
  const int error = ibv_modify_qp(qp, &attributes, mask);
  if (error != 0)
    return failure(VERBENA_COLL_SYSTEM,
                   std::string(state) + " (" + who + "): " + std::strerror(error));
  return {};
}

}  // namespace

Expected<void> to_init(ibv_qp* qp, u8 port, const std::string& who) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  return modify(qp, attributes,
                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "queue pair to INIT", who);
}

Expected<void> to_rtr(ibv_qp* qp, const Rail& rail, const QPAddress& remote,
                      const std::string& who) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(rail.address().mtu, remote.mtu));
  attributes.dest_qp_num = remote.qp_num;
  attributes.rq_psn = remote.psn;
  attributes.max_dest_rd_atomic = rail.reads();
  attributes.min_rnr_timer = kRNRTimer;
  attributes.ah_attr.port_num = rail.port();
  attributes.ah_attr.dlid = remote.lid;
  attributes.ah_attr.is_global = is_ethernet_address(remote) ? 1 : 0;
  std::copy(remote.gid.begin(), remote.gid.end(), attributes.ah_attr.grh.dgid.raw);
  attributes.ah_attr.grh.sgid_index = rail.gid_index();
  attributes.ah_attr.grh.hop_limit = kHopLimit;
  return modify(qp, attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "queue pair to RTR", who);
}

Expected<void> to_rts(ibv_qp* qp, const SendSettings& settings, const std::string& who) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = settings.psn;
  attributes.timeout = settings.timeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRNRRetriesForever;
  attributes.max_rd_atomic = settings.reads;
  return modify(qp, attributes,
                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                "queue pair to RTS", who);
}

}  // namespace verbena::coll
