// MulticastGroups: the sockets of one link that receive IP multicast on UDP port 4791, one bound to
// each group. The kernel gives a copy of a datagram to every socket that is bound to its group and
// a member of it on the interface it came by: so each process, each adapter and the sender itself
// gets one. Not thread-safe.
#pragma once

#include <vector>

#include "host/links/datagram_receiver.h"

namespace verbena::host {

class MulticastGroups {
 public:
  [[nodiscard]] Expected<void> open();
  // Readable when receive() would find something; the same for as long as it is open.
  [[nodiscard]] int fd() const { return poll_.get(); }
  void close();

  // Precondition: not a member.
  [[nodiscard]] Expected<void> join(const GID& group, u32 interface_index);
  void leave(const GID& group);

  // As in Link. Frames have their group as destination.
  [[nodiscard]] bool receive(LinkCounters& counters);
  [[nodiscard]] bool poll_frame(IngressFrame& out);

 private:
  Descriptor poll_;  // epoll over all sockets
  std::vector<DatagramReceiver> receivers_;
};

}  // namespace verbena::host
