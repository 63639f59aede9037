#include "verbs/page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace verbena::verbs {
namespace {

void unmap(u8* begin, const u8* end) {
  if (begin != end) munmap(begin, static_cast<std::size_t>(end - begin));
}

// A mapping that begins at a multiple of huge pages.
u8* map_aligned(u64 bytes) {
  constexpr u64 kMask = PageMemory::kHugeBytes - 1;
  void* const mapped = mmap(nullptr, bytes + PageMemory::kHugeBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  u8* const begin = static_cast<u8*>(mapped);
  u8* const aligned = begin + (-reinterpret_cast<u64>(begin) & kMask);
  unmap(begin, aligned);
  unmap(aligned + bytes, begin + bytes + PageMemory::kHugeBytes);
  return aligned;
}

// Replaces the private pages by those of a new file, and returns its descriptor, or -1.
int map_file_over(u8* at, u64 bytes) {
  const int file = memfd_create("verbena-pages", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED)
    return file;
  close(file);
  return -1;
}

}  // namespace

std::optional<PageMemory> PageMemory::make(u64 bytes, Sharing sharing) {
  constexpr u64 kPage = 4096;
  PageMemory memory;
  memory.bytes_ = (bytes + kPage - 1) / kPage * kPage;
  if (memory.bytes_ < bytes || memory.bytes_ + kHugeBytes < bytes) return std::nullopt;
  memory.data_ = map_aligned(memory.bytes_);
  if (memory.data_ == nullptr) return std::nullopt;
  if (sharing == Sharing::kCommon) memory.file_ = map_file_over(memory.data_, memory.bytes_);
  madvise(memory.data_, memory.bytes_, MADV_HUGEPAGE);
  // Older kernels refuse this; each page is then made when it is first touched.
  madvise(memory.data_, memory.bytes_, MADV_POPULATE_WRITE);
  return memory;
}

PageMemory::~PageMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) close(file_);
}

}  // namespace verbena::verbs
