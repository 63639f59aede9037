// The checks of `verbena doctor` on one device: its address, interface, GIDs, MTU, UDP port, and
// whether packets come back to it.
#pragma once

#include "cli/finding.h"
#include "host/network/local_address.h"

namespace verbena::cli {

// `why`: how the address was chosen, in words.
[[nodiscard]] Findings examine_device(const host::LocalAddress& address, const std::string& why);

// `granted_bytes` of socket buffer, the windows that follow, and net.core.rmem_max.
struct BufferFacts {
  u32 window_bytes = 0, window_packets = 0;
  u64 rmem_max = 0;  // 0: not known
};
[[nodiscard]] Finding judge_buffers(const BufferFacts& facts);

}  // namespace verbena::cli
