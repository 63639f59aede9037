// The allowances of a device whose packets go through sockets, for tests of what they do.
#pragma once

#include "transport/rc/path_allowances.h"

namespace verbena::test {

inline PathAllowances software_path(u32 window_packets = 1024,
                                    std::optional<Duration> min_probe_timeout = std::nullopt) {
  return {.window_packets = window_packets,
          .window_bytes = 1u << 20,
          .loss_response = LossResponse::kHalveWindow,
          .min_probe_timeout = min_probe_timeout};
}

}  // namespace verbena::test
