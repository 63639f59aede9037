#include "host/nic/nic_stream_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace verbena::host {
namespace {

constexpr u64 kDescriptorsOfStream = 2;  // a TCP socket, and the socket to the program
constexpr u64 kPartOfStreams = 2;        // half of all; the rest is for listeners and packets
constexpr u32 kUsualStreams = 1024;      // of a function, at most

}  // namespace

u64 raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? limit.rlim_max : limit.rlim_cur;
}

Expected<u32> share_of_streams(const NICConfig& config, u64 descriptors) {
  const u64 all = descriptors / kPartOfStreams / kDescriptorsOfStream;
  u64 promised = 0, others = 0;
  for (const NICFunctionConfig& function : config.functions)
    function.max_streams ? promised += *function.max_streams : ++others;
  if (promised > all)
    return failure(EINVAL, "streams: the functions have " + std::to_string(promised) +
                               " together; with " + std::to_string(descriptors) +
                               " descriptors (ulimit -n) the NIC has " + std::to_string(all));
  if (others == 0) return 0;
  return static_cast<u32>(std::min<u64>((all - promised) / others, kUsualStreams));
}

}  // namespace verbena::host
