// The Internet checksum: one's complement of the one's complement sum of 16-bit words. RFC 1071.
// Used by IPv4 headers, and by UDP and TCP over a pseudo-header.
#pragma once

#include <span>

#include "base/types.h"

namespace verbena {

class InternetChecksum {
 public:
  // Adds bytes that begin at an even offset. Only the last call may have an odd length: a 0 follows
  // it.
  void add(std::span<const u8> bytes);
  void add16(u16 value) { sum_ += value; }
  // Returns the value for the checksum field; over data that includes a right one it is 0.
  [[nodiscard]] u16 finish() const;

 private:
  u64 sum_ = 0;  // cannot overflow: 2^48 words
};

}  // namespace verbena
