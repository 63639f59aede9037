// The settings that a program may change before an rsocket has its buffers, and their defaults.
// rsocket(7).
#pragma once

#include <chrono>
#include <string>

#include "base/types.h"

namespace verbena::rdmacm::rsocket {

inline constexpr u32 kLeastQueue = 16, kMostQueue = 32'768;  // work requests; as a QP of ours has
inline constexpr u32 kLeastBuffer = 4096, kMostBuffer = 1U << 30;  // bytes
inline constexpr u32 kMostInline = 1024;
inline constexpr u32 kMostIomaps = 127 << 8;  // what travels in 8 bits: wire.h

struct Settings {
  u32 send_bytes = 128U << 10;
  u32 receive_bytes = 128U << 10;  // two halves
  u32 send_queue = 384;
  u32 receive_queue = 384;
  u32 inline_bytes = 64;
  u32 iomaps = 0;  // entries that the peer may write
};

struct Defaults {
  Settings settings;
  std::chrono::microseconds polling_time{10};    // how long a call looks before it sleeps
  std::chrono::milliseconds longest_sleep{500};  // then it looks again, whatever it was told
};

// Returns the defaults from the files of a folder, each with one number. A file that is missing or
// makes no sense leaves the value above.
[[nodiscard]] Defaults read_defaults(const std::string& folder);
// Returns the defaults of this host: /etc/rdma/rsocket, as it was at the first call.
[[nodiscard]] const Defaults& defaults();

}  // namespace verbena::rdmacm::rsocket
