#include "host/os/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "host/local/address_space.h"
#include "host/local/replaced_memory.h"

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

bool grants(u64 begin, u64 end, PageRight right) {
  const AddressSpace space(AddressSpace::Look::kThoroughly);
  const auto has_right = [right](const MappedArea& area) {
    return right == PageRight::kWrite ? area.is_writable : area.is_readable;
  };
  return space.covers(begin, end, has_right).value_or(true);
}

constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_*, Linux 5.14

}  // namespace

// msync(2): ENOMEM where a page is not mapped; MS_ASYNC does nothing else since Linux 2.6.19.
bool is_mapped(const void* address, std::size_t length) {
  if (length == 0) return true;
  const PageRange pages = pages_of(address, length);
  return pages.length != 0 && ::msync(pages.first, pages.length, MS_ASYNC) == 0;
}

// A replacement of memory takes the right to write away while it lasts: then the answer says
// nothing, and the kernel is asked again.
bool is_mapped(const void* address, std::size_t length, PageRight right) {
  if (!is_mapped(address, length)) return false;
  const u64 begin = reinterpret_cast<u64>(address);
  for (;;) {
    const u64 replacements = wait_for_replacement();
    if (grants(begin, begin + length, right)) return true;
    if (wait_for_replacement() == replacements) return false;
  }
}

bool page_in(const void* address, std::size_t length, PageIn how) {
  const bool to_write = how == PageIn::kToWrite;
  if (!is_mapped(address, length, to_write ? PageRight::kWrite : PageRight::kRead)) return false;
  if (length == 0) return true;
  const PageRange pages = pages_of(address, length);
  const int advice = to_write ? kPopulateWrite : kPopulateRead;
  return ::madvise(pages.first, pages.length, advice) == 0 || errno == EINVAL;
}

}  // namespace verbena::host
