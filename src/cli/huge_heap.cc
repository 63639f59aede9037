#include "cli/huge_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"

namespace verbena::cli {
namespace {

constexpr int kReserved = 1 << 30;
constexpr std::size_t kHugePage = 2u << 20;
constexpr std::size_t kStep = 64u << 10;  // less than malloc takes from elsewhere
constexpr u32 kSteps = 4;                 // more than is free at first
constexpr int kUsualPad = 128 << 10;      // mallopt(3)

char* end_of_heap() { return static_cast<char*>(::sbrk(0)); }

// Allocates until the heap grows: malloc extends the heap only when its memory is used up.
void make_heap_grow() {
  const char* const end = end_of_heap();
  std::vector<std::unique_ptr<char[]>> used;
  for (u32 i = 0; i < kSteps && end_of_heap() == end; ++i)
    used.push_back(std::make_unique_for_overwrite<char[]>(kStep));
}

}  // namespace

void put_heap_on_huge_pages() {
  ::mallopt(M_MMAP_MAX, 0);         // large pieces come from the heap too
  ::mallopt(M_TRIM_THRESHOLD, -1);  // which does not shrink
  ::mallopt(M_TOP_PAD, kReserved);
  char* const begin = end_of_heap();
  make_heap_grow();
  ::mallopt(M_TOP_PAD, kUsualPad);
  const std::size_t to_page = (kHugePage - reinterpret_cast<std::uintptr_t>(begin)) % kHugePage;
  const auto grown = static_cast<std::size_t>(end_of_heap() - begin);
  if (grown > to_page) ::madvise(begin + to_page, grown - to_page, MADV_HUGEPAGE);
}

}  // namespace verbena::cli
