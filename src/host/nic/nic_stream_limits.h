// How many TCP connections the virtual functions of a NIC may have, so that none takes the
// descriptors of another.
#pragma once

#include "host/nic/nic_config.h"
#include "host/os/error.h"

namespace verbena::host {

// Raises the soft limit of this process's descriptors to the hard one, and returns it.
u64 raise_descriptor_limit();

// Returns the limit of each function whose configuration has none: an equal part of what the others
// leave. EINVAL: the configuration promises more than `descriptors` allow.
[[nodiscard]] Expected<u32> share_of_streams(const NICConfig& config, u64 descriptors);

}  // namespace verbena::host
