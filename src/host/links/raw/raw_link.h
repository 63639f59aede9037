// RawLink: Ethernet frames on the interface of a device, past the kernel's IP and UDP: RoCEv2, and
// RoCEv1 (EtherType 0x8915). It stands on a UDPLink, which still does the work that a raw link
// cannot or need not do. It shares QP 1, the port and multicast groups with the other processes of
// the host. It also carries frames to this host, to groups, by other interfaces, or to neighbours
// whose MAC address is not known yet: sending through the kernel's stack makes the kernel ask. The
// UDP sockets drop the packets that the raw port takes (take_filter.h).
// If the UDPLink encrypts, its associations seal frames to neighbours, and open those that the raw
// port takes. RoCEv1 is not encrypted, and is neither sent nor taken then.
// RoCEv1 has no such path: frames to an unknown neighbour are lost, and the transports send
// them again. Between processes of one host the two are the same, and go as RoCEv2.
#pragma once

#include <memory>

#include "host/links/raw/port_link.h"
#include "host/settings/link_kind.h"

namespace verbena::host {

class RawLink final : public PortLink {
 public:
  // Returns `link` itself for LinkKind::kUDP. Otherwise an Error says what is missing for `kind`.
  [[nodiscard]] static Expected<std::unique_ptr<Link>> on(std::unique_ptr<UDPLink> link,
                                                          const LocalAddress& address,
                                                          LinkKind kind);

  // The same on a port that others share, and that receives nothing for this link.
  [[nodiscard]] static std::unique_ptr<Link> on_shared(std::unique_ptr<UDPLink> link,
                                                       const LocalAddress& address,
                                                       std::unique_ptr<RawPort> port);

  void append(const EgressFrame& frame) override;
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return port_->may_wait() && below_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;

 private:
  using PortLink::PortLink;
  [[nodiscard]] Expected<void> open_port(const LocalAddress& address, LinkKind kind);
  void append_to_neighbour(const EgressFrame& frame, const MAC& to);
  void append_v2(const EgressFrame& frame, const Neighbours::Route& route);
  void append_v1(const EgressFrame& frame, const Neighbours::Route& route);

  u32 round_ = 0, below_quiet_rounds_ = 0;
};

}  // namespace verbena::host
