// The XDP program of an AF_XDP link: the packets of the link (taken_traffic.h) go to the socket of
// the queue on which they arrive. All other packets, and those on a queue without a socket, go on
// to the kernel. eBPF instructions written here, so nothing is compiled at run time. Linux,
// Documentation/bpf/standardization/instruction-set.rst.
#pragma once

#include <linux/bpf.h>

#include <vector>

#include "host/links/raw/taken_traffic.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

// `map_fd`: an XSKMAP from queues to sockets.
[[nodiscard]] std::vector<bpf_insn> xdp_program(const TakenTraffic& taken, int map_fd);

enum class XDPFrames : u8 { kOneBuffer, kSeveralBuffers };

// The program on its interface, with its map. Gone when this is closed, or the process ends in
// whatever way: a BPF link holds it there. One XDP program at a time can be on an interface.
class XDPAttachment {
 public:
  // `queues`: how many the map has room for.
  [[nodiscard]] static Expected<XDPAttachment> load(const TakenTraffic& taken, u32 queues,
                                                    XDPFrames frames);
  [[nodiscard]] bool add_socket(u32 queue, int fd);  // false: errno
  // From now on frames come. In the driver where it can, else in the kernel's generic place.
  [[nodiscard]] Expected<void> attach();
  // Takes other packets of the interface from now on, by another program on the same link.
  [[nodiscard]] Expected<void> retake(const TakenTraffic& taken);
  void close();

 private:
  XDPAttachment() = default;

  u32 interface_index_ = 0;
  XDPFrames frames_{};
  Descriptor map_, program_, link_;
};

}  // namespace verbena::host
