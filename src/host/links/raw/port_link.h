// PortLink: the part that links with a raw port have in common. Ethernet frames go and come by the
// port. The UDPLink below has the slot of the QPNs, and does the work that a raw port cannot do.
#pragma once

#include <memory>
#include <vector>

#include "host/links/raw/neighbours.h"
#include "host/links/raw/raw_port.h"
#include "host/links/udp_link.h"

namespace verbena::host {

class PortLink : public Link {
 public:
  ~PortLink() override { leave(); }

  [[nodiscard]] Trains takes() const final { return port_->takes(); }
  [[nodiscard]] Time next_timer() const final { return below_->next_timer(); }
  [[nodiscard]] std::span<const int> descriptors() const final { return descriptors_; }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) final {
    return below_->join_multicast(group);
  }
  void leave_multicast(const GID& group) final { below_->leave_multicast(group); }
  void leave() final;
  void abandon() final;
  [[nodiscard]] const LinkCounters& counters() const final;

 protected:
  PortLink(std::unique_ptr<UDPLink> below, u32 interface_index)
      : below_(std::move(below)), neighbours_(interface_index) {}

  // Once, before the link is used.
  void use(std::unique_ptr<RawPort> port);
  [[nodiscard]] bool has_left() const { return has_left_; }
  // Returns the way to the neighbour that takes the frame. Reads the clock once in each burst.
  [[nodiscard]] const Neighbours::Route& route_of(const EgressFrame& frame);
  void ask_for(const EgressFrame& frame) { neighbours_.ask(frame.destination, burst_begun_); }
  void end_burst() { is_in_burst_ = false; }

  std::unique_ptr<UDPLink> below_;
  LinkCounters own_;  // without those of the link below
  std::unique_ptr<RawPort> port_;

 private:
  Neighbours neighbours_;
  std::vector<int> descriptors_;
  Time burst_begun_;
  bool is_in_burst_ = false, has_left_ = false;
  mutable LinkCounters counters_;
};

}  // namespace verbena::host
