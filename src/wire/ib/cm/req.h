// REQ: Request for Communication, the first message of a connection. IBTA Vol 1, 12.6.5, table 106.
// Network order; behind the MAD header.
//    0                8               16              24             31
//   |                    Local Communication ID                     |   0
//   |     rsvd      |                   Vendor ID                   |   4
//   |                        ServiceID (64)                         |   8
//   |                      Local CA GUID (64)                       |  16
//   |                           reserved                            |  24
//   |                          Local Q_Key                          |  28
//   |                   Local QPN                   | Responder Res.|  32
//   |                   Local EECN                  | InitiatorDepth|  36
//   |                  Remote EECN                  |RCMTmo(5)|T(2)|E|  40
//   |                  Starting PSN                 |LCMTmo(5)|Retry|  44
//   |         Partition Key         |MTU(4)|D| RNR(3)|MaxCM(4)|S|X(3)|  48
//   |                     primary Path (44 bytes)                   |  52
//   |                    alternate Path (44 bytes)                  |  96
//   |                     Private Data (92 bytes)                   | 140
// RCMTmo, LCMTmo: Remote and Local CM Response Timeout, 4.096 us * 2^n. T, X: Transport Service
// Type and Extended Transport Type. E: End-to-End Flow Control. D: RDC Exists. S: SRQ. The bit
// above the last two of the alternate Path is SAP, suspended alternate path.
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
#include "wire/ib/cm/path.h"

namespace verbena::cm {

enum class TransportService : u8 { kRC = 0, kUC = 1, kRD = 2, kExtended = 3 };  // 12.7.10
inline constexpr u8 kExtendedXRC = 1;  // Extended Transport Type. Annex A14

struct REQ {
  static constexpr Attribute kAttribute = Attribute::kREQ;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 92;  // bytes
  CommId local_comm_id{};
  u32 vendor_id = 0;  // 24 bits; ece.h
  ServiceId service_id{};
  GUID local_ca_guid{};
  QKey local_q_key{};
  QPN local_qpn{};
  u8 responder_resources = 0;
  u32 local_eecn = 0;  // 24 bits
  u8 initiator_depth = 0;
  u32 remote_eecn = 0;                // 24 bits
  u8 remote_cm_response_timeout = 0;  // 5 bits
  TransportService transport_service = TransportService::kRC;
  bool end_to_end_flow_control = false;
  PSN starting_psn{};
  u8 local_cm_response_timeout = 0;  // 5 bits
  u8 retry_count = 0;                // 3 bits
  PKey p_key{0xffff};
  u8 path_mtu_code = 0;  // 4 bits, as in wire/ib/mtu.h; may be none of the five
  bool rdc_exists = false;
  u8 rnr_retry_count = 0;  // 3 bits
  u8 max_cm_retries = 0;   // 4 bits
  bool srq = false;
  u8 extended_transport = 0;    // 3 bits
  Path primary{}, alternate{};  // an alternate of zeros: none
  bool sap_supported = false;
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<REQ> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const REQ&, const REQ&) = default;
};

}  // namespace verbena::cm
