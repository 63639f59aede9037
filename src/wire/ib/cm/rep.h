// REP: Reply to a Request for Communication: the passive side accepts. IBTA Vol 1, 12.6.8,
// table 110. Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |                          Local Q_Key                          |   8
//   |                   Local QPN                   | Vendor ID (H) |  12
//   |                   Local EECN                  | Vendor ID (M) |  16
//   |                  Starting PSN                 | Vendor ID (L) |  20
//   | Responder Res.| InitiatorDepth|Delay(5)|F(2)|E|RNR(3)|S|rsvd |  24
//   |                      Local CA GUID (64)                       |  28
//   |                    Private Data (196 bytes)                   |  36
// Delay: Target ACK Delay. F: Failover Accepted.
// E: End-to-End Flow Control. RNR: RNR Retry Count. S: SRQ. An XRC target puts its QPN in EECN.
// Invariant: decode(encode(r)) == r. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/psn.h"
#include "base/types.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"

namespace verbena::cm {

enum class Failover : u8 { kAccepted = 0, kNotSupported = 1, kRejected = 2, kReserved = 3 };

struct REP {
  static constexpr Attribute kAttribute = Attribute::kREP;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 196;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  QKey local_q_key{};
  QPN local_qpn{};
  u32 local_eecn = 0;  // 24 bits
  u32 vendor_id = 0;   // 24 bits; ece.h
  PSN starting_psn{};
  u8 responder_resources = 0;
  u8 initiator_depth = 0;
  u8 target_ack_delay = 0;                  // 5 bits: 4.096 us * 2^n
  Failover failover = Failover::kAccepted;  // of the alternate path; Linux sends 0 without one
  bool end_to_end_flow_control = false;
  u8 rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  GUID local_ca_guid{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<REP> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const REP&, const REP&) = default;
};

}  // namespace verbena::cm
