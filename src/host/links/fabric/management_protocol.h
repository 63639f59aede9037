// The messages between programs that manage an InfiniBand subnet and the server of its fabric,
// beside fabric_protocol.h: the calls of libibumad as messages. One connection opens a port, and
// MADs go both ways on it. Registrations and questions use other connections, so that their answers
// never stand between MADs.
//
//   any connection   PortQuery ->     <- PortAttributes (fabric_protocol.h), or Refused
//                    MADRegister ->   <- MADRegistered
//   an open port     MADAttach ->     <- MADAttached, or Refused
//                    MAD ->           <- MAD                     in parts of kMADPart bytes
#pragma once

#include <array>

#include "host/links/fabric/fabric_protocol.h"

namespace verbena::host {

inline constexpr u32 kMADPart = 4096;

struct FabricPortQuery {
  static constexpr FabricKind kKind = FabricKind::kPortQuery;
  u32 version = kFabricVersion;
  u32 host = 0;
};
struct FabricMADAttach {
  static constexpr FabricKind kKind = FabricKind::kMADAttach;
  u32 version = kFabricVersion;
  u32 host = 0;
  u64 claim = 0;
};
struct FabricMADAttached {
  static constexpr FabricKind kKind = FabricKind::kMADAttached;
  u32 client = 0;  // for MADRegister
};
struct FabricMADRegister {
  static constexpr FabricKind kKind = FabricKind::kMADRegister;
  u32 client = 0, agent = 0;
  u32 registers = 1;  // 0: the agent ends
  u8 mgmt_class = 0, class_version = 0;
  std::array<u64, 2> method_mask{};
  u32 oui = 0;
};
struct FabricMADRegistered {
  static constexpr FabricKind kKind = FabricKind::kMADRegistered;
  i32 error = 0;  // errno
};
struct FabricMAD {  // and a part of its bytes
  static constexpr FabricKind kKind = FabricKind::kMAD;
  u32 agent = 0;
  i32 status = 0;  // errno: ETIMEDOUT, a request comes back
  u32 timeout_ms = 0, retries = 0;
  u32 total_bytes = 0, offset = 0;
  u32 qp = 0, q_key = 0;  // of the other end
  u16 lid = 0, p_key_index = 0;
  u8 service_level = 0, path_bits = 0;
};

}  // namespace verbena::host
