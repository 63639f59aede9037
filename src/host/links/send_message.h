// SendMessage: one burst as sendmsg() wants it: destination, segment size, traffic class, hop
// limit.
#pragma once

#include <sys/socket.h>

#include "host/links/burst_assembler.h"
#include "host/network/socket_address.h"

namespace verbena::host {

class SendMessage {
 public:
  // Returns the hop limit of `burst`, or the host's own if `burst` asks for none.
  [[nodiscard]] static u8 hop_limit_of(const Burst& burst) {
    return burst.hop_limit != 0 ? burst.hop_limit : kSocketHopLimit;
  }
  // Fills `out`, which then points into this object, `burst` and `iovs`.
  void set(const Burst& burst, std::span<const iovec> iovs, u32 interface_index, msghdr& out);

 private:
  template <typename T>
  void add_control(msghdr& out, int level, int type, T value);

  SocketAddress address_;
  alignas(cmsghdr) u8 control_[3 * CMSG_SPACE(sizeof(int))];
};

}  // namespace verbena::host
