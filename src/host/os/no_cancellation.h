// NoCancellation: while it lives, pthread_cancel(3) of this thread waits. For what a lock is held
// over and calls that are cancellation points: a thread that ended there would leave it locked.
// Costs no system call.
#pragma once

#include <pthread.h>

namespace verbena::host {

class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace verbena::host
