// For the programs in this folder: the first device, which GID it has, and the way of an RC QP to
// RTS.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "bench/limits/process.h"

namespace verbs {

inline constexpr std::uint32_t kFirstPSN = 1;

struct Address {
  std::uint8_t index = 0;  // in the port's table
  ibv_gid gid{};
};

inline ibv_context* open_first_device() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  limits::require(devices != nullptr && count > 0, "no RDMA device");
  ibv_context* const context = ibv_open_device(devices[0]);
  limits::require(context != nullptr, "ibv_open_device");
  ibv_free_device_list(devices);
  return context;
}

// The first RoCEv2 GID that stands for an IPv4 address.
inline Address address_of(ibv_context* context) {
  ibv_gid_entry entry{};
  for (std::uint8_t i = 0; ibv_query_gid_ex(context, 1, i, &entry, 0) == 0; ++i) {
    const bool is_ipv4 = entry.gid.raw[10] == 0xff && entry.gid.raw[11] == 0xff;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && is_ipv4) return {i, entry.gid};
  }
  limits::fail("no RoCEv2 GID of an IPv4 address");
}

inline ibv_ah_attr way_to(const ibv_gid& peer, const Address& own) {
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = 1;
  way.grh.dgid = peer;
  way.grh.sgid_index = own.index;
  way.grh.hop_limit = 64;
  return way;
}

// An RC QP in RESET; one READ or atomic at a time. `access`: what the peer may do.
inline void connect(ibv_qp* qp, const ibv_ah_attr& way, std::uint32_t dest_qp, ibv_mtu mtu,
                    int access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(access);
  limits::require(
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
      "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = mtu;
  attr.dest_qp_num = dest_qp;
  attr.rq_psn = kFirstPSN;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr = way;
  limits::require(
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
      "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kFirstPSN;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  limits::require(ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
                  "RTS");
}

}  // namespace verbs
