#include "memory/touch.h"

#include "base/check.h"

namespace verbena {
namespace {

constexpr std::size_t kSmallestPage = 4096;

void read_one(const u8* at) { (void)*static_cast<const volatile u8*>(at); }

}  // namespace

thread_local constinit RecoveryPoint* fault_recovery = nullptr;

thread_local constinit TouchFault last_touch_fault;

void recover_from_fault() {
  RecoveryPoint* const where = fault_recovery;
  CHECK(where != nullptr);
  fault_recovery = nullptr;
  __builtin_longjmp(*where, 1);
}

// The compiler must see a call to unknown code here: only from such a call may control, as far as
// it knows, return to the recovery point.
bool touch(void (*access)(const void* object), const void* object) {
  void (*volatile unseen)(const void*) = access;
  RecoveryPoint here;
  if (__builtin_setjmp(here) != 0) return false;
  fault_recovery = &here;
  unseen(object);
  fault_recovery = nullptr;
  return true;
}

bool is_readable(Bytes bytes) {
  if (bytes.empty()) return true;
  return touch([&] {
    for (std::size_t at = 0; at < bytes.size(); at += kSmallestPage) read_one(bytes.data() + at);
    read_one(&bytes.back());
  });
}

}  // namespace verbena
