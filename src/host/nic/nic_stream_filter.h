// NICStreamFilter: the TCP connections that a virtual function may open. Pure: no I/O.
#pragma once

#include <span>
#include <vector>

#include "host/nic/nic_stream_protocol.h"

namespace verbena::host {

enum class NICStreamRefusal : u8 {
  kNone,
  kSource,       // not an address of the function, or a port that needs a privilege
  kDestination,  // no host of the network
};
inline constexpr std::size_t kNICStreamRefusals = 3;
[[nodiscard]] const char* name_of(NICStreamRefusal refusal);

class NICStreamFilter {
 public:
  explicit NICStreamFilter(std::vector<GID> addresses) : addresses_(std::move(addresses)) {}

  // `first_port`: the first that needs no privilege.
  [[nodiscard]] NICStreamRefusal check(const NICStreamRequest& request, u16 first_port) const;

 private:
  [[nodiscard]] bool is_own(const GID& address) const;

  std::vector<GID> addresses_;
};

}  // namespace verbena::host
