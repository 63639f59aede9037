// Status: the reason why a verbs call was refused. abi/ turns it into the errno that the man pages
// name.
#pragma once

#include <tl/expected.hpp>

#include "base/types.h"

namespace verbena {

enum class Status : u8 {
  kOk,
  kInvalidArgument,  // EINVAL: an argument or transition that the specification does not allow
  kNoMemory,         // ENOMEM: a table or queue is full
  kNotSupported,     // EOPNOTSUPP: understood, but not offered by this device
  kBusy,             // EBUSY: the object is still in use by another
  kNotFound,         // ENOENT
  kPermission,       // EPERM
  kAgain,            // EAGAIN
};

template <typename T>
using Result = tl::expected<T, Status>;
inline tl::unexpected<Status> failure(Status s) { return tl::unexpected<Status>(s); }

}  // namespace verbena
