// Refuses memory to one allocation of a call, as a machine without memory does. It stands in for
// malloc() in the test's process, so it works in builds without a sanitizer, which has its own.
#pragma once

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VERBENA_CAN_REFUSE_ALLOCATIONS 1

#include <functional>

namespace verbena::test {

// The number of this thread's allocations that succeed before one is refused; negative: none is.
extern thread_local int allocations_left;

// Runs `call` again and again, each time refusing one allocation later, until it needs no more.
// `call` returns whether it succeeded, leaves nothing then, and has set errno if it failed. Each
// failure has to be ENOMEM.
void refuse_each_allocation_of(const std::function<bool()>& call);

// The same for a call that makes an object.
template <typename T>
void refuse_each_allocation_of(const std::function<T*()>& make,
                               const std::function<bool(T*)>& destroy) {
  refuse_each_allocation_of([&] {
    T* const made = make();
    allocations_left = -1;
    return made != nullptr && destroy(made);
  });
}

}  // namespace verbena::test

#endif
