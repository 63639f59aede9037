#include "host/local/life_sign.h"

#include <linux/futex.h>

#include "base/check.h"

namespace verbena::host {

void LifeSign::prepare() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  CHECK(pthread_mutex_init(&mutex_, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
}

void LifeSign::hold() {
  CHECK(pthread_mutex_lock(&mutex_) == 0);
  held_.store(1, std::memory_order_release);
  held_.notify_all();
}

void LifeSign::release() {
  held_.store(0, std::memory_order_release);
  pthread_mutex_unlock(&mutex_);
}

void LifeSign::wait_until_held() const { held_.wait(0, std::memory_order_acquire); }

// The futex of the mutex: the owner's thread ID, and what the kernel puts there at its end. Robust
// futexes are an agreement with the kernel (get_robust_list(2)), so glibc cannot change it.
LifeSign::Look LifeSign::look() const {
  return __atomic_load_n(reinterpret_cast<const u32*>(&mutex_.__data.__lock), __ATOMIC_ACQUIRE);
}

bool LifeSign::is_alive(Look look) {
  return (look & FUTEX_TID_MASK) != 0 && (look & FUTEX_OWNER_DIED) == 0;
}

}  // namespace verbena::host
