// The barrier between C++ and programs in C: no exception leaves a function that a program calls.
// An exported function catches all in its function try block and returns what its manual page says
// of failures, with this errno. Functions that are called through tables (ibv_context::ops and its
// like) are put there as guarded<function>. tests/abi/check_barrier.py finds what has no barrier.
#pragma once

#include <cxxabi.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "abi/ibverbs/errors.h"

namespace verbena::abi {

// In a handler: the errno value for what was thrown. Cancelling a thread unwinds it by an exception
// that must go on, so that one is thrown again. pthread_cancel(3)
[[nodiscard]] inline int errno_of_exception() {
  try {
    throw;
  } catch (const ::abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::logic_error&) {  // length_error, invalid_argument, out_of_range
    return EINVAL;
  } catch (const std::system_error& error) {
    return error.code().value() > 0 ? error.code().value() : EIO;
  } catch (...) {
    return EIO;
  }
}

// Returns what a verb gives after an exception: the errno value, nullptr or nothing.
template <typename R>
R fail_by_exception() {
  const int error = errno_of_exception();
  errno = error;
  if constexpr (std::is_same_v<R, int>)
    return error;
  else
    return R();
}

template <auto kFunction>
struct Guarded;

template <typename R, typename... Args, R (*kFunction)(Args...)>
struct Guarded<kFunction> {
  static R call(Args... args) {
    try {
      return kFunction(args...);
    } catch (...) {
      return fail_by_exception<R>();
    }
  }
};

// A function that returns an errno value, a pointer or nothing, with the barrier around it.
template <auto kFunction>
inline constexpr auto* guarded = &Guarded<kFunction>::call;

}  // namespace verbena::abi
