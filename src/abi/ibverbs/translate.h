// Values of the verbs interface to values of the core, and back. nullopt: not a value the core has.
#pragma once

#include <infiniband/verbs.h>

#include <cstring>
#include <optional>

#include "abi/ibverbs/newer_verbs.h"
#include "device/device.h"

namespace verbena::abi {

// The access bits of verbs are those of the core.
static_assert(IBV_ACCESS_LOCAL_WRITE == static_cast<u32>(Access::kLocalWrite));
static_assert(IBV_ACCESS_REMOTE_WRITE == static_cast<u32>(Access::kRemoteWrite));
static_assert(IBV_ACCESS_REMOTE_READ == static_cast<u32>(Access::kRemoteRead));
static_assert(IBV_ACCESS_REMOTE_ATOMIC == static_cast<u32>(Access::kRemoteAtomic));
static_assert(IBV_ACCESS_MW_BIND == static_cast<u32>(Access::kMWBind));
static_assert(IBV_ACCESS_ZERO_BASED == static_cast<u32>(Access::kZeroBased));
static_assert(kAccessFlushGlobal == static_cast<u32>(Access::kFlushGlobal));
static_assert(kAccessFlushPersistent == static_cast<u32>(Access::kFlushPersistent));
inline constexpr u32 kAllAccess = ((IBV_ACCESS_ZERO_BASED << 1) - 1) | kAccessFlushGlobal;
inline constexpr u32 kRemoteAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                     IBV_ACCESS_REMOTE_ATOMIC | kAccessFlushGlobal |
                                     kAccessFlushPersistent;

constexpr AccessFlags to_access(unsigned flags) { return AccessFlags(flags & kAllAccess); }
constexpr AccessFlags to_remote_access(unsigned flags) {
  return AccessFlags(flags & kRemoteAccess);
}

inline GID to_gid(const ibv_gid& gid) {
  GID to;
  std::memcpy(to.bytes.data(), gid.raw, sizeof gid.raw);
  return to;
}
inline ibv_gid to_ibv(const GID& gid) {
  ibv_gid to;
  std::memcpy(to.raw, gid.bytes.data(), sizeof to.raw);
  return to;
}

constexpr ibv_mtu to_ibv(MTU mtu) { return static_cast<ibv_mtu>(mtu); }  // the same codes

constexpr std::optional<QPType> to_qp_type(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC: return QPType::kRC;
    case IBV_QPT_UC: return QPType::kUC;
    case IBV_QPT_UD: return QPType::kUD;
    case IBV_QPT_XRC_SEND: return QPType::kXRCInitiator;
    case IBV_QPT_XRC_RECV: return QPType::kXRCTarget;
    case IBV_QPT_RAW_PACKET: return QPType::kRawPacket;
    case IBV_QPT_DRIVER: break;
  }
  return std::nullopt;
}

constexpr ibv_qp_type to_ibv(QPType type) {
  switch (type) {
    case QPType::kRC: return IBV_QPT_RC;
    case QPType::kUC: return IBV_QPT_UC;
    case QPType::kUD: return IBV_QPT_UD;
    case QPType::kXRCInitiator: return IBV_QPT_XRC_SEND;
    case QPType::kXRCTarget: return IBV_QPT_XRC_RECV;
    case QPType::kRawPacket: return IBV_QPT_RAW_PACKET;
  }
  CHECK_UNREACHABLE();
}

constexpr std::optional<QPState> to_qp_state(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET: return QPState::kReset;
    case IBV_QPS_INIT: return QPState::kInit;
    case IBV_QPS_RTR: return QPState::kRTR;
    case IBV_QPS_RTS: return QPState::kRTS;
    case IBV_QPS_SQD: return QPState::kSQD;
    case IBV_QPS_SQE: return QPState::kSQE;
    case IBV_QPS_ERR: return QPState::kError;
    case IBV_QPS_UNKNOWN: break;
  }
  return std::nullopt;
}

constexpr ibv_qp_state to_ibv(QPState state) {
  switch (state) {
    case QPState::kReset: return IBV_QPS_RESET;
    case QPState::kInit: return IBV_QPS_INIT;
    case QPState::kRTR: return IBV_QPS_RTR;
    case QPState::kRTS: return IBV_QPS_RTS;
    case QPState::kSQD: return IBV_QPS_SQD;
    case QPState::kSQE: return IBV_QPS_SQE;
    case QPState::kError: return IBV_QPS_ERR;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::abi
