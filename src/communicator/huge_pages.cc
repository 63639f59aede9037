#include "communicator/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace verbena::coll {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE; older headers do not have it
constexpr u64 kHugePage = 2u << 20;

}  // namespace

HugePages::HugePages() {
  const char* const setting = std::getenv("VERBENA_HUGE");
  is_off_ = setting != nullptr && std::strcmp(setting, "off") == 0;
}

void HugePages::on_use(const void* address, u64 bytes) {
  if (is_off_ || bytes < kLeastBytes || bytes > kMostBytes) return;
  const auto known = std::ranges::find_if(ranges_, [&](const Range& range) {
    return range.address == address && range.bytes == bytes;
  });
  if (known == ranges_.end()) {
    ranges_.push_front({address, bytes, false});
    if (ranges_.size() > kRemembered) ranges_.pop_back();
    return;
  }
  if (known->is_huge) return;
  known->is_huge = true;
  const u64 begin = (reinterpret_cast<u64>(address) + kHugePage - 1) / kHugePage * kHugePage;
  const u64 end = (reinterpret_cast<u64>(address) + bytes) / kHugePage * kHugePage;
  // A refusal (an old kernel, no memory) leaves the pages as they are.
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, kCollapse);
}

}  // namespace verbena::coll
