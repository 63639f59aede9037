// The configuration of a device: identity, tables, limits. IBTA Vol 1, 11.2.1.2 (Query HCA).
#pragma once

#include <vector>

#include "base/types.h"
#include "congestion/parameters.h"
#include "device/hardening.h"
#include "device/port/pacing_config.h"
#include "transport/local/published_device.h"
#include "transport/rc/limits.h"
#include "transport/rc/path_allowances.h"
#include "wire/ib/gid.h"
#include "wire/ib/mtu.h"
#include "wire/roce/gid_type.h"

namespace verbena {

struct GIDEntry {
  GID gid;
  GIDType type = GIDType::kRoCEv2;
};

// Transport: the protocol of the QPs, as verbs name it.
enum class Transport : u8 {
  kInfiniBand,  // packets: InfiniBand's transport, over RoCE too
  kIWARP,       // a TCP stream for each QP: RDMAP. RC QPs only
};

struct DeviceLimits {
  u32 max_qp = 16384;
  u32 max_qp_wr = 32768;
  u32 max_sge = kMaxSGEOfDevice;
  u32 max_inline_bytes = 1024;
  u32 max_cq = 65536;
  u32 max_cqe = 4194303;
  u32 max_mr = 1u << 20;
  u64 max_registered_bytes = ~u64{0};  // of all regions together
  u32 max_mw = 1u << 20;
  u32 max_pd = 65536;
  u32 max_srq = 65536;
  u32 max_srq_wr = 32767;
  u32 max_xrcd = 65536;
  u32 max_ah = 1u << 20;
  u32 max_multicast_groups = 256;  // with a QP attached; 0: no multicast
  u32 max_qps_of_group = 256;      // attached to one group
  u8 max_rd_atomic = 16;           // responder resources of a QP: max_dest_rd_atomic
  u8 max_init_rd_atomic = 128;     // outstanding READs and atomics of a QP: max_rd_atomic
  static constexpr u32 kMaxSGEOfDevice = 30;
};

// When an acknowledgement goes that a QP owes.
enum class AcknowledgementOrder : u8 {
  kInTurn,  // in its QP's turn
  kFirst,   // before what all other QPs have to send
};

struct EgressConfig {
  u32 run_packets = 32;  // of one QP in a row; 1 and more
  AcknowledgementOrder acknowledgements = AcknowledgementOrder::kInTurn;
  // The first so many QPs have a UDP source port each, which spreads them over the paths of a
  // network; the others have one for each 64, so that a link can join their small packets.
  u32 qps_with_own_port = ~0u;
};

struct DeviceConfig {
  Transport transport = Transport::kInfiniBand;
  u64 node_guid = 0;
  std::vector<GIDEntry> gids;  // index = GID index
  std::vector<PKey> p_keys{kDefaultPKey};
  MTU active_mtu = MTU::k1024;
  QPN first_qpn{0x100};  // this device hands out first_qpn .. + limits.max_qp - 1
  DeviceLimits limits;
  u64 seed = 1;           // of keys and initial values
  PathAllowances path;    // for sockets and schedulers; the default is a NIC's: none
  u32 packet_bytes = 0;   // of payload in a full RC packet; 0: the QP's path MTU
  u32 ack_interval = 32;  // RC packets between two requests for an ACK, at most
  Retransmission retransmission = Retransmission::kGoBackN;
  u32 reordering_packets = 3;       // with selective repeat. RCLimits
  CongestionParameters congestion;  // of every RC, XRC and UC QP
  PacingConfig pacing;
  EgressConfig egress;
  HardeningConfig hardening;
  LocalPorts local{};  // outlive the device
};

}  // namespace verbena
