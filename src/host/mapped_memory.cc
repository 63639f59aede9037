#include "host/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace verbena::host {

// msync(2): ENOMEM where a page is not mapped; MS_ASYNC does nothing else since Linux 2.6.19.
bool is_mapped(const void* address, std::size_t length) {
  if (length == 0) return true;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(address) + length;
  if (end < first) return false;
  return ::msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
}

}  // namespace verbena::host
