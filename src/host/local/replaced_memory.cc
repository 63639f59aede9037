#include "host/local/replaced_memory.h"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>

#include "base/check.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

// The range that is being replaced now; its length is 0 if there is none.
std::atomic<u64> held_begin{0}, held_length{0};
std::atomic<u64> replacements{0};  // begun

// The last replacement after which this thread has tried again. initial-exec: a signal handler uses
// it.
thread_local constinit u64 retried __attribute__((tls_model("initial-exec"))) = 0;

void* pointer_to(u64 address) { return reinterpret_cast<void*>(address); }

// HeldRange: a range whose pages are read-only until give_back(), or until other memory replaces
// them.
class HeldRange {
 public:
  HeldRange(u64 begin, u64 length) : begin_(begin), length_(length) {
    replacements.fetch_add(1);
    held_begin.store(begin);
    held_length.store(length);
    is_held_ = ::mprotect(pointer_to(begin), length, PROT_READ) == 0;
  }
  ~HeldRange() { held_length.store(0); }
  HeldRange(const HeldRange&) = delete;
  HeldRange& operator=(const HeldRange&) = delete;

  [[nodiscard]] bool is_held() const { return is_held_; }
  void give_back() const {
    CHECK(::mprotect(pointer_to(begin_), length_, PROT_READ | PROT_WRITE) == 0);
  }

 private:
  u64 begin_, length_;
  bool is_held_ = false;
};

bool is_held(u64 address) { return address - held_begin.load() < held_length.load(); }

// Moved, the copy keeps its page tables: nothing faults again.
void put_in_place(void* copy, u64 address, u64 length) {
  void* const at = pointer_to(address);
  CHECK(::mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
}

// Copies whole pages, including the data beside the region. Some of it may be poisoned by
// AddressSanitizer, whose memcpy would refuse it.
void copy_pages(void* to, const void* from, u64 length) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

bool replace_by(void* copy, u64 address, u64 length) {
  if (copy == MAP_FAILED) return false;
  const HeldRange held(address, length);
  // A memory file system that is full shows as a fault.
  if (held.is_held() && touch([&] { copy_pages(copy, pointer_to(address), length); })) {
    put_in_place(copy, address, length);
    return true;
  }
  if (held.is_held()) held.give_back();
  ::munmap(copy, length);
  return false;
}

}  // namespace

bool replace_memory(u64 address, u64 length, int file) {
  return replace_by(::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), address,
                    length);
}

bool give_back_memory(u64 address, u64 length) {
  return replace_by(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), address,
      length);
}

u64 wait_for_replacement() {
  while (held_length.load() != 0) ::sched_yield();
  return replacements.load();
}

bool may_retry_after_replacement(u64 address) {
  const u64 begun = replacements.load();
  if (begun == retried) return false;
  while (is_held(address)) ::sched_yield();
  retried = begun;
  return true;
}

}  // namespace verbena::host
