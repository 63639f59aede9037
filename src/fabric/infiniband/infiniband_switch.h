// InfiniBandSwitch: buffers at its inputs, one for each port and virtual lane, whose free space its
// neighbours have as credits; at each output a queue for each lane (virtual output queues: a packet
// waits for its own output and for no other); VL arbitration; a linear forwarding table. It never
// drops and never pauses: a packet without credits waits where it is, and its buffer fills. IBTA
// Vol 1, 7.6 (lanes), 7.9.4 (flow control), 18.2.4 (forwarding), A10.2.1 (FECN).
//
// A packet holds its place at the input until its last bit has left. Among inputs that want the
// same output and lane, the packet that arrived first goes first.
#pragma once

#include <vector>

#include "fabric/infiniband/forwarding_tables.h"
#include "fabric/infiniband/link_credits.h"
#include "fabric/infiniband/managed_tables.h"
#include "fabric/port.h"
#include "fabric/switch_node.h"

namespace verbena::fabric {

class InfiniBandSwitch final : public SwitchNode {
 public:
  // `ports`: the switch's own, which are numbered `first_port` .. of all. The tables outlive it;
  // packets of live processes go by the managed ones.
  InfiniBandSwitch(Domain& domain, const InfiniBandConfig& config, NodeIndex node,
                   std::span<Port> ports, u32 first_port, const ForwardingTables& tables,
                   const ManagedTables& managed);

  void on_arrival(u32 port, FrameIndex index) override;
  void on_lost(u32 port, FrameIndex index) override;
  void on_wake(u32 port) override;
  void fetch() const override;
  void on_link_down(u32 port) override;
  void on_link_up(u32 port) override;

  [[nodiscard]] u32 port_count() const override { return static_cast<u32>(ports_.size()); }
  [[nodiscard]] bool is_stuck(u32 port, u32 lane, Time since) const override;
  [[nodiscard]] bool holds(u32 port, u32 lane, u32 ingress) const override;
  [[nodiscard]] u32 longest_queue(u32 port) const override { return sides_[port].longest_queue; }
  [[nodiscard]] u64 waiting_bytes(u32 port) const override {
    return sides_[port].queues.bytes_of_all();
  }
  [[nodiscard]] u64 sent_bytes(u32 port) const override { return sides_[port].sent_bytes; }
  [[nodiscard]] u64 marked_frames(u32 port) const override { return sides_[port].marks; }
  [[nodiscard]] Duration waited_for_credits(u32 port, Time now) const override;
  [[nodiscard]] PacketCount sent_packets(u32 port) const override { return sides_[port].sent; }
  [[nodiscard]] u64 dropped_packets(u32 port) const override { return sides_[port].dropped; }

 private:
  struct Leaving {               // the packet being sent, whose place at its input is not free yet
    u16 ingress = 0, bytes = 0;  // 0: there is none
    u8 lane = 0;
  };
  struct Side {  // one port's
    explicit Side(const CreditConfig& config) : credits(config) {}
    EgressQueues queues;  // by lane; paused: without credits
    LinkCredits credits;
    Leaving leaving;
    u8 owes = 0;             // lanes whose credits the neighbour is to be told of, a bit each
    u8 starved = 0;          // lanes that had no credits since their last packet, a bit each
    u32 fecn_threshold = 0;  // bytes
    u16 unmarked = 0;        // packets that were let off since the last mark
    std::array<Time, kVirtualLanes> without_credits{};  // since then
    Time waits_since = Time::never();                   // with packets, and credits for none
    Duration waited{};
    u32 longest_queue = 0;
    u64 sent_bytes = 0;
    PacketCount sent;
    u64 dropped = 0;  // that came by this port, and that no table has a way for
    u64 marks = 0;
  };

  void on_flow_control(u32 port, const Frame& frame);
  u16 way_of(std::span<const u16> ways, const Frame& frame) const;
  void forward(u32 port, u16 out, FrameIndex index);
  void on_live_arrival(u32 port, FrameIndex index);
  void wait_for_rest(u32 port, FrameIndex index);
  void enqueue(u32 port, FrameIndex index);
  void go_on(u32 port);
  void transmit(u32 port);
  void send_packet(u32 port, FrameIndex index);
  void send_credits(u32 port);
  void put_on_wire(u32 port, FrameIndex index);
  void free(u32 ingress, u32 lane, u32 bytes);
  void drop(u32 ingress, FrameIndex index, u64& counter);
  void mark(Side& side, Frame& frame);

  Domain& domain_;
  const InfiniBandConfig config_;
  const NodeIndex node_;
  const std::span<Port> ports_;
  const u32 first_port_;
  const ForwardingTables& tables_;
  const ManagedTables& managed_;
  std::vector<Side> sides_;
};

}  // namespace verbena::fabric
