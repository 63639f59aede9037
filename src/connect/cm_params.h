// The parameters of a program's calls to the CMAgent. Codes of times: cm_timeout.h. Defaults are
// those of Linux's rdma_cm (drivers/infiniband/core/cma.c). Values that do not fit their field on
// the wire, and private data that is too long, are refused with Status::kInvalidArgument.
#pragma once

#include <optional>
#include <span>

#include "base/psn.h"
#include "base/types.h"
#include "wire/ib/cm/answered.h"
#include "wire/ib/cm/ece.h"
#include "wire/ib/cm/ids.h"
#include "wire/ib/cm/reject_reason.h"
#include "wire/ib/cm/sidr_rep.h"
#include "wire/ib/gid.h"
#include "wire/ib/mtu.h"

namespace verbena {

using ListenerId = Id<struct ListenerIdTag, u32>;

inline constexpr u8 kDefaultPacketLifeTime = 18;     // CMA_IBOE_PACKET_LIFETIME: 1.07 s
inline constexpr u8 kDefaultCMResponseTimeout = 20;  // CMA_CM_RESPONSE_TIMEOUT: 4.29 s
inline constexpr u8 kDefaultMaxCMRetries = 15;       // CMA_MAX_CM_RETRIES
inline constexpr u8 kDefaultMRAServiceTimeout = 24;  // CMA_CM_MRA_SETTING
inline constexpr u8 kDefaultHopLimit = 64;

enum class ListenFamily : u8 { kAny, kIPv4, kIPv6 };  // of the destination address

struct ListenParams {
  ServiceId service_id{};
  ServiceId service_mask{~u64{0}};  // bits of service_id that must match
  std::optional<GID> local_gid{};   // nullopt: every local address
  ListenFamily family = ListenFamily::kAny;
  u32 backlog = 1024;  // requests that wait for the program; another one is dropped, as in Linux
  u64 user = 0;        // comes back in events
};

enum class CMTransport : u8 { kRC, kUC, kXRC };

struct ConnectParams {
  GID local_gid{}, remote_gid{};
  ServiceId service_id{};
  CMTransport transport = CMTransport::kRC;
  QPN qpn{};
  PSN starting_psn{};  // of the first packet that the QP will receive. IBTA Vol 1, 12.7.31
  u8 responder_resources = 0, initiator_depth = 0;
  u8 retry_count = 7, rnr_retry_count = 7;  // 3 bits each
  bool srq = false, end_to_end_flow_control = false;
  PKey p_key{0xffff};
  MTU path_mtu = MTU::k1024;
  u32 flow_label = 0;  // 20 bits
  u8 traffic_class = 0;
  u8 hop_limit = kDefaultHopLimit;
  u8 sl = 0;           // 4 bits
  u8 packet_rate = 0;  // 6 bits
  u8 packet_life_time = kDefaultPacketLifeTime;
  u8 remote_cm_response_timeout = kDefaultCMResponseTimeout;
  u8 local_cm_response_timeout = kDefaultCMResponseTimeout;
  u8 max_cm_retries = kDefaultMaxCMRetries;  // 4 bits
  cm::ECE ece{};                             // the options that we offer
  std::span<const u8> private_data{};        // up to REQ::kPrivateDataSize; sent unchanged
  u16 source_port = 0;                       // iWARP only: of TCP, if it is free; 0: any
  u64 user = 0;
};

struct AcceptParams {
  QPN qpn{};
  PSN starting_psn{};
  u8 responder_resources = 0, initiator_depth = 0;
  u8 rnr_retry_count = 7;  // 3 bits
  bool srq = false, end_to_end_flow_control = false;
  cm::ECE ece{};                       // the options of the offer that we accept
  std::span<const u8> private_data{};  // up to REP::kPrivateDataSize
  u64 user = 0;                        // of later events; that of the listener until then
};

struct RejectParams {
  cm::RejectReason reason = cm::RejectReason::kConsumerReject;
  std::span<const u8> ari{};           // up to REJ::kARISize
  std::span<const u8> private_data{};  // up to REJ::kPrivateDataSize
};

enum class MRATime : u8 {
  kNow,
  kOnDuplicate,  // only if the peer repeats its message, as Linux's rdma_cm does
};

struct MRAParams {
  u8 service_timeout = kDefaultMRAServiceTimeout;
  MRATime when = MRATime::kOnDuplicate;
  std::span<const u8> private_data{};  // up to MRA::kPrivateDataSize
};

struct SIDRRequestParams {
  GID local_gid{}, remote_gid{};
  ServiceId service_id{};
  PKey p_key{0xffff};
  u8 cm_response_timeout = kDefaultCMResponseTimeout;
  u8 max_cm_retries = kDefaultMaxCMRetries;  // 4 bits
  std::span<const u8> private_data{};        // up to SIDRREQ::kPrivateDataSize
  u64 user = 0;
};

struct SIDRReplyParams {
  cm::SIDRStatus status = cm::SIDRStatus::kValid;
  QPN qpn{};
  QKey q_key{};
  std::span<const u8> private_data{};  // up to SIDRREP::kPrivateDataSize
};

}  // namespace verbena
