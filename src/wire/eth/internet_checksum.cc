#include "wire/eth/internet_checksum.h"

#include "base/bytes.h"

namespace verbena {

void InternetChecksum::add(std::span<const u8> bytes) {
  std::size_t at = 0;
  for (; at + 2 <= bytes.size(); at += 2) sum_ += load_be16(bytes.data() + at);
  if (at < bytes.size()) sum_ += u64{bytes[at]} << 8;
}

u16 InternetChecksum::finish() const {
  u64 sum = sum_;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<u16>(~sum);
}

}  // namespace verbena
