// The attributes of a connection's QP, as the two sides have agreed in REQ and REP. Linux's cm.c
// returns the same ones in ib_cm_init_qp_attr(). IBTA Vol 1, 12.6.5, 12.6.8.
#pragma once

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "connect/cm_event.h"
#include "connect/cm_params.h"

namespace verbena::rdmacm {

// For paths of ours: what a loss costs, and how long a peer that is descheduled is waited for.
inline constexpr u8 kPacketLifeTime = 14;     // 67 ms
inline constexpr u8 kCMResponseTimeout = 18;  // 1.07 s
inline constexpr u8 kMaxCMRetries = 15;
inline constexpr u8 kMaxRetryCount = 7;  // 3 bits
inline constexpr u8 kCAACKDelay = 15;    // as in CMConfig

// One way; the other is its mirror.
struct ConnectionPath {
  GID local, remote;
  u8 local_gid_index = 0;
  u8 traffic_class = 0, hop_limit = kDefaultHopLimit, sl = 0;
  u32 flow_label = 0;
  MTU mtu = MTU::k1024;
  u8 packet_life_time = kPacketLifeTime;

  [[nodiscard]] ibv_ah_attr address() const;
  [[nodiscard]] ibv_sa_path_rec record() const;
};

// PeerAnswer: the values that the peer has sent about its end.
struct PeerAnswer {
  QPN qpn;
  PSN sq_psn;  // of our first packet: a Starting PSN is what its sender expects to receive
  u8 responder_resources = 0, initiator_depth = 0;  // ours: the peer's other one
  u8 retry_count = 7, rnr_retry_count = 7;
  u8 ack_timeout = 0;

  // `path`: ours; `retry_count` as we asked for.
  static PeerAnswer from(const cm::REP& rep, const ConnectionPath& path, u8 retry_count);
  static PeerAnswer from(const cm::REQ& req);
};

// An XRC target puts its QPN in the place of the EECN. Annex A14
[[nodiscard]] inline QPN qpn_of(const cm::REP& rep) {
  return rep.local_qpn.value != 0 ? rep.local_qpn : QPN{rep.local_eecn};
}

[[nodiscard]] ConnectionPath path_of(const ConnectRequest& request, u8 local_gid_index);

}  // namespace verbena::rdmacm
