// PacketInfo: the properties by which a fault rule distinguishes packets.
#pragma once

#include <optional>

#include "base/psn.h"
#include "base/types.h"
#include "device/port/frame.h"
#include "wire/ib/gid.h"
#include "wire/ib/opcode.h"

namespace verbena::faults {

enum class Direction : u8 { kTransmit, kReceive };  // as the faulty device sees it

struct PacketInfo {
  Direction direction = Direction::kTransmit;
  Opcode opcode{};
  PSN psn{};
  QPN local_qp{};  // of the faulty device
  GID peer{};
  std::size_t size_bytes = 0;  // BTH to ICRC

  [[nodiscard]] static PacketInfo of(const EgressFrame& frame);
  // Returns nullopt if the frame is too short to have a BTH; no rule applies to it.
  [[nodiscard]] static std::optional<PacketInfo> of(const IngressFrame& frame);
};

}  // namespace verbena::faults
