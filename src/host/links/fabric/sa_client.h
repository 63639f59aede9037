// One request of a program to the administration of its InfiniBand subnet, which the subnet manager
// on another host answers: paths, multicast groups. IBTA Vol 1, 15.4. Waits for the answer.
#pragma once

#include <array>

#include "host/links/fabric/fabric_protocol.h"
#include "wire/ib/sa_header.h"

namespace verbena::host {

// The record of the answer. ENODEV: this process is on no fabric. ENETDOWN: the port has no manager
// yet. ETIMEDOUT: nobody answers. EINVAL, EAGAIN and the like: the administration refuses.
[[nodiscard]] Expected<std::array<u8, kSARecordSize>> ask_subnet_administration(
    const SARequest& request);

}  // namespace verbena::host
