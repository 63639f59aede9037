#include "wire/iwarp/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

#include "base/check.h"

namespace verbena::iwarp {

// ISA-L does not invert. The bytes are not changed: it takes them as unsigned char*.
void CRC32C::add(std::span<const u8> bytes) {
  CHECK(bytes.size() < 1u << 30);
  state_ = crc32_iscsi(const_cast<u8*>(bytes.data()), static_cast<int>(bytes.size()), state_);
}

std::array<u8, 4> CRC32C::bytes() const {
  const u32 v = value();
  return {static_cast<u8>(v), static_cast<u8>(v >> 8), static_cast<u8>(v >> 16),
          static_cast<u8>(v >> 24)};
}

bool CRC32C::matches(std::span<const u8, 4> bytes) const {
  return std::ranges::equal(this->bytes(), bytes);
}

}  // namespace verbena::iwarp
