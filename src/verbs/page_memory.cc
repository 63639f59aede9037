#include "verbs/page_memory.h"

#include <sys/mman.h>

namespace verbena::verbs {
namespace {

void unmap(u8* begin, const u8* end) {
  if (begin != end) munmap(begin, static_cast<std::size_t>(end - begin));
}

// A mapping that begins at a multiple of huge pages.
u8* map_aligned(u64 octets) {
  constexpr u64 kMask = PageMemory::kHugeOctets - 1;
  void* const mapped = mmap(nullptr, octets + PageMemory::kHugeOctets, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  u8* const begin = static_cast<u8*>(mapped);
  u8* const aligned = begin + (-reinterpret_cast<u64>(begin) & kMask);
  unmap(begin, aligned);
  unmap(aligned + octets, begin + octets + PageMemory::kHugeOctets);
  return aligned;
}

}  // namespace

std::optional<PageMemory> PageMemory::make(u64 octets) {
  constexpr u64 kPage = 4096;
  PageMemory memory;
  memory.octets_ = (octets + kPage - 1) / kPage * kPage;
  if (memory.octets_ < octets || memory.octets_ + kHugeOctets < octets) return std::nullopt;
  memory.data_ = map_aligned(memory.octets_);
  if (memory.data_ == nullptr) return std::nullopt;
  madvise(memory.data_, memory.octets_, MADV_HUGEPAGE);
  // Older kernels refuse this; each page is then made when it is first touched.
  madvise(memory.data_, memory.octets_, MADV_POPULATE_WRITE);
  return memory;
}

PageMemory::~PageMemory() {
  if (data_ != nullptr) munmap(data_, octets_);
}

}  // namespace verbena::verbs
