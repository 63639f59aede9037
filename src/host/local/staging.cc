#include "host/local/staging.h"

#include <algorithm>

namespace verbena::host {

MutableBytes Staging::beside(u64 address, u64 length) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<u8[]>(kBytes + kPage);
  const u64 start = reinterpret_cast<u64>(memory_.get());
  const u64 skipped = (address + kPage / 2 - start) % kPage;
  return {memory_.get() + skipped, std::min(length, kBytes)};
}

}  // namespace verbena::host
