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
#include <vector>

#include "host/links/raw/neighbours.h"
#include "host/links/raw/raw_port.h"
#include "host/links/udp_link.h"
#include "host/settings/link_kind.h"

namespace verbena::host {

class RawLink final : public Link {
 public:
  // Returns `link` itself for LinkKind::kUDP. Otherwise an Error says what is missing for `kind`.
  [[nodiscard]] static Expected<std::unique_ptr<Link>> on(std::unique_ptr<UDPLink> link,
                                                          const LocalAddress& address,
                                                          LinkKind kind);
  ~RawLink() override { leave(); }

  void append(const EgressFrame& frame) override;
  [[nodiscard]] Trains takes() const override { return port_->takes(); }
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return port_->may_wait() && below_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] Time next_timer() const override { return below_->next_timer(); }
  [[nodiscard]] std::span<const int> descriptors() const override { return descriptors_; }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override {
    return below_->join_multicast(group);
  }
  void leave_multicast(const GID& group) override { below_->leave_multicast(group); }
  void leave() override;
  void abandon() override;
  [[nodiscard]] const LinkCounters& counters() const override;

 private:
  RawLink(std::unique_ptr<UDPLink> below, u32 interface_index)
      : below_(std::move(below)), neighbours_(interface_index) {}
  [[nodiscard]] Expected<void> open_port(const LocalAddress& address, LinkKind kind);
  void append_to_neighbour(const EgressFrame& frame, const MAC& to);
  void append_v2(const EgressFrame& frame, const Neighbours::Route& route);
  void append_v1(const EgressFrame& frame, const Neighbours::Route& route);

  std::unique_ptr<UDPLink> below_;
  LinkCounters own_;
  std::unique_ptr<RawPort> port_;
  Neighbours neighbours_;
  std::vector<int> descriptors_;
  Time flush_begun_;
  bool any_appended_ = false;
  u32 round_ = 0, below_quiet_rounds_ = 0;
  bool has_left_ = false;
  mutable LinkCounters counters_;
};

}  // namespace verbena::host
