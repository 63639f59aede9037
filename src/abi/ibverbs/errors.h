// Errors at the border: the core's refusals as the errno values that the man pages name.
// A verb that returns an int returns the errno value; one that returns a pointer returns nullptr.
// Both leave the value in errno, as rdma-core does.
#pragma once

#include <cerrno>
#include <cstddef>

#include "base/check.h"
#include "base/status.h"
#include "transport/work_request.h"

namespace verbena::abi {

constexpr int to_errno(Status status) {
  switch (status) {
    case Status::kOk: return 0;
    case Status::kInvalidArgument: return EINVAL;
    case Status::kNoMemory: return ENOMEM;
    case Status::kNotSupported: return EOPNOTSUPP;
    case Status::kBusy: return EBUSY;
    case Status::kNotFound: return ENOENT;
    case Status::kPermission: return EPERM;
    case Status::kAgain: return EAGAIN;
  }
  CHECK_UNREACHABLE();
}

constexpr int to_errno(PostError error) {
  switch (error) {
    case PostError::kOk: return 0;
    case PostError::kQueueFull: return ENOMEM;
    case PostError::kTooManySGEs: return EINVAL;
    case PostError::kInlineTooLong: return EINVAL;
    case PostError::kBadOpcode: return EINVAL;
    case PostError::kBadState: return EINVAL;
    case PostError::kMessageTooLong: return EINVAL;
    case PostError::kUnaligned: return EINVAL;
    case PostError::kBadDestination: return EINVAL;
    case PostError::kUnreadable: return EFAULT;
  }
  CHECK_UNREACHABLE();
}

inline int refuse(int error) {
  if (error != 0) errno = error;
  return error;
}
inline int refuse(Status status) { return refuse(to_errno(status)); }

// For the verbs that return -1.
inline int fail_with_minus_one(int error) {
  errno = error;
  return -1;
}

inline std::nullptr_t fail(int error) {
  errno = error;
  return nullptr;
}
inline std::nullptr_t fail(Status status) { return fail(to_errno(status)); }

}  // namespace verbena::abi
