#include "host/nic/nic_stream_filter.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::host {
namespace {

bool is_loopback(const GID& address) {
  constexpr u32 kLoopbackNetwork = 127;
  if (address.is_ipv4()) return address.ipv4() >> 24 == kLoopbackNetwork;
  constexpr GID kLoopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return address == kLoopback;
}

// The kernel takes the address 0 for its own host.
bool is_unspecified(const GID& address) {
  return address.is_zero() || (address.is_ipv4() && address.ipv4() == 0);
}

// Otherwise a program in a container would reach, by the NIC, what only the host itself may.
bool is_host_of_network(const GID& address, const GID& source) {
  return !is_unspecified(address) && !address.is_multicast() &&
         address.is_ipv4() == source.is_ipv4() && (!is_loopback(address) || is_loopback(source));
}

}  // namespace

const char* name_of(NICStreamRefusal refusal) {
  switch (refusal) {
    case NICStreamRefusal::kNone: return "passed";
    case NICStreamRefusal::kSource: return "refused_source";
    case NICStreamRefusal::kDestination: return "refused_destination";
  }
  CHECK_UNREACHABLE();
}

NICStreamRefusal NICStreamFilter::check(const NICStreamRequest& request, u16 first_port) const {
  const TCPTuple& ends = request.ends;
  const bool needs_privilege = ends.local_port != 0 && ends.local_port < first_port;
  if (!is_own(ends.local) || needs_privilege) return NICStreamRefusal::kSource;
  if (request.call == NICStreamCall::kConnect && !is_host_of_network(ends.remote, ends.local))
    return NICStreamRefusal::kDestination;
  return NICStreamRefusal::kNone;
}

bool NICStreamFilter::is_own(const GID& address) const {
  return std::ranges::find(addresses_, address) != addresses_.end();
}

}  // namespace verbena::host
