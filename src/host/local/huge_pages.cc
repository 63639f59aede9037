#include "host/local/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace verbena::host {
namespace {

constexpr int kCollapse = 25;       // MADV_COLLAPSE, which older headers lack
constexpr u64 kMaxHugePages = 128;  // in a call: a registration is not to take a second

void collapse(u64 begin, u64 count) {
  (void)::madvise(reinterpret_cast<void*>(begin), count * kHugePage, kCollapse);
}

}  // namespace

// Those at the ends reach beyond the memory: they make a program at most 2 MiB larger.
HugePages huge_pages_of(std::span<const u8> memory) {
  const u64 first = reinterpret_cast<u64>(memory.data()), end = first + memory.size();
  const u64 from = (first + kHugePage / 2) & ~(kHugePage - 1);
  const u64 to = (end + kHugePage / 2) & ~(kHugePage - 1);
  const bool has_half = memory.size() >= kHugePage / 2 && to > from;
  return has_half ? HugePages{from, std::min((to - from) / kHugePage, kMaxHugePages)} : HugePages{};
}

// The first and the last on their own: they may be in no mapping as a whole, which fails a call.
void give_huge_pages(std::span<const u8> memory) {
  const HugePages pages = huge_pages_of(memory);
  if (pages.count == 0) return;
  collapse(pages.begin, 1);
  if (pages.count > 2) collapse(pages.begin + kHugePage, pages.count - 2);
  if (pages.count > 1) collapse(pages.begin + (pages.count - 1) * kHugePage, 1);
}

}  // namespace verbena::host
