// LifeSign: how other processes know that a process, and the program in it, is still the one they
// met: a word in shared memory that changes when its thread ends, in whatever way, execve() and
// SIGKILL included. A process ID alone does not tell: another program or process may have it next.
// It is a robust mutex that the thread holds as long as it lives (pthread_mutexattr_setrobust(3)):
// the kernel marks it when the thread ends, before anybody can have its ID or memory.
#pragma once

#include <pthread.h>

#include <atomic>

#include "base/types.h"

namespace verbena::host {

class LifeSign {
 public:
  using Look = u32;

  // --- the owner, in memory that is all zeros
  void prepare();
  void hold();                   // in the thread, which never calls execve() itself
  void release();                // in the same one
  void wait_until_held() const;  // in the same process

  // --- others. A thread that was seen alive is so as long as it looks the same.
  [[nodiscard]] Look look() const;
  [[nodiscard]] static bool is_alive(Look look);

 private:
  pthread_mutex_t mutex_;
  std::atomic<u32> held_;
};

}  // namespace verbena::host
