// CRC-32C over bytes that come in pieces, as iSCSI and MPA have it. RFC 3720, 12.1; RFC 5044, 4.4.
#pragma once

#include <array>
#include <span>

#include "base/types.h"

namespace verbena::iwarp {

class CRC32C {
 public:
  void add(std::span<const u8> bytes);
  [[nodiscard]] u32 value() const { return ~state_; }
  // On the wire: from the lowest byte up.
  [[nodiscard]] std::array<u8, 4> bytes() const;
  [[nodiscard]] bool matches(std::span<const u8, 4> bytes) const;

 private:
  u32 state_ = ~0u;
};

}  // namespace verbena::iwarp
