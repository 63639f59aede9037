#include "host/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace verbena::host {

namespace {

struct PageRange {
  void* first;
  std::size_t length;  // 0: it would wrap around the address space
};

PageRange pages_of(const void* address, std::size_t length) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(address) + length;
  return {reinterpret_cast<void*>(first), end < first ? 0 : end - first};
}

constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_*, Linux 5.14

}  // namespace

// msync(2): ENOMEM where a page is not mapped; MS_ASYNC does nothing else since Linux 2.6.19.
bool is_mapped(const void* address, std::size_t length) {
  if (length == 0) return true;
  const PageRange pages = pages_of(address, length);
  return pages.length != 0 && ::msync(pages.first, pages.length, MS_ASYNC) == 0;
}

bool page_in(const void* address, std::size_t length, PageIn how) {
  if (!is_mapped(address, length)) return false;
  if (length == 0) return true;
  const PageRange pages = pages_of(address, length);
  const int advice = how == PageIn::kToWrite ? kPopulateWrite : kPopulateRead;
  return ::madvise(pages.first, pages.length, advice) == 0 || errno == EINVAL;
}

}  // namespace verbena::host
