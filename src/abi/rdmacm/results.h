// The return values of librdmacm's functions: 0, or -1 with the reason in errno.
#pragma once

#include "abi/ibverbs/exceptions.h"

namespace verbena::rdmacm {

using abi::errno_of_exception;

inline int fail(int error) { return abi::fail_with_minus_one(error); }

// `error`: an errno value, as verbs return it.
inline int result_of(int error) { return error == 0 ? 0 : fail(error); }

// A connection that is over is one that the call does not fit, as for Linux.
inline int result_of(Status status) {
  return result_of(status == Status::kNotFound ? EINVAL : abi::to_errno(status));
}

}  // namespace verbena::rdmacm
