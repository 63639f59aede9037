// Why the XDP link cannot be had, from errno, for a person to read.
#pragma once

#include <cerrno>
#include <cstring>

#include "host/os/error.h"

namespace verbena::host {

// `what`: the step that failed, "create a BPF map".
[[nodiscard]] inline tl::unexpected<Error> xdp_failure(const std::string& what) {
  const int error = errno;
  if (error == EPERM || error == EACCES)
    return failure(error,
                   "the XDP link needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF "
                   "(to " +
                       what + ": " + std::strerror(error) + "); run as root, or VERBENA_LINK=udp");
  if (error == EBUSY || error == EEXIST)
    return failure(
        EBUSY,
        "one process at a time can have the XDP link of an interface, and another has it, "
        "or another XDP program is there; VERBENA_LINK=packet has no such limit");
  return failure(error, "the XDP link cannot " + what + ": " + std::strerror(error));
}

}  // namespace verbena::host
