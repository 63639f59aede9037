// RDMANetlink: answers requests of NETLINK_RDMA about our devices, as the kernel's nldev.c answers
// them about its own: `rdma dev`, `rdma link`, `rdma resource show`, and its lists of QPs, PDs,
// CQs, MRs, SRQs and contexts (rdma_resources.h). What devices there are and what they are called
// is in their files (cli/device_files.h); objects are those of the running programs of this user.
//
// Other requests fail with EOPNOTSUPP: those that would change a device, and the list of rdma_cm
// IDs, which programs do not report.
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "abi/paths/netlink_message.h"

namespace verbena::abi::paths {

struct ResourceKind;

class RDMANetlink {
 public:
  // Sends a datagram to the requester. False: it has no room for more.
  using Send = bool(void* requester, std::span<const u8> datagram);

  // `root`: what stands before /sys/class/infiniband; empty, or a folder of a test. `port`: the
  // netlink address of the requester.
  RDMANetlink(std::string_view root, u32 port, Send* send, void* requester)
      : root_(root), port_(port), send_(send), requester_(requester) {}

  void answer(std::span<const u8> datagram) const;  // all requests in it

 private:
  struct Device;
  class Devices;
  class Dump;

  [[nodiscard]] int answer(const NetlinkRequest& request, NetlinkWriter& writer) const;
  [[nodiscard]] int tell_devices(const NetlinkRequest& request, NetlinkWriter& writer) const;
  [[nodiscard]] int tell_ports(const NetlinkRequest& request, NetlinkWriter& writer) const;
  [[nodiscard]] int tell_summary(const NetlinkRequest& request, NetlinkWriter& writer) const;
  [[nodiscard]] int tell_resources(const ResourceKind& kind, const NetlinkRequest& request,
                                   NetlinkWriter& writer) const;
  [[nodiscard]] int flush(NetlinkWriter& writer) const;
  void put_device(NetlinkWriter& writer, const Device& device) const;
  void put_port(NetlinkWriter& writer, const Device& device) const;

  std::string_view root_;
  u32 port_;
  Send* send_;
  void* requester_;
};

}  // namespace verbena::abi::paths
