// Subnet: channel adapters and switches with their management agents, joined by links. Management
// datagrams travel hop by hop: directed-route SMPs along their path, all others along the linear
// forwarding tables that a subnet manager has written. IBTA Vol 1, 14.2.2 (directed routes), 14.2.6
// (port states), 14.2.5.1 (traps).
//
// Sans-IO: datagrams of programs, changes of cables and the time go in by calls; datagrams for
// programs, and changes for them and for the data path, are polled. A datagram takes no time:
// send() does all that follows from it. Real time; one owner.
#pragma once

#include <deque>
#include <utility>

#include "management/node.h"
#include "management/subnet_agent.h"

namespace verbena::management {

// A datagram for the programs of a channel adapter.
struct Delivery {
  PortPlace at;
  Datagram datagram;
};

struct PortEvent {
  PortPlace at;
  PortChanges changes;
};

class Subnet {
 public:
  static constexpr u32 kMostHops = 64;
  static constexpr std::size_t kMostTraps = 256;  // that wait for TrapRepress; more are not sent
  // A first sweep is over when ports are active, and no SMP has set anything for this time and for
  // half of the time that the sweep has taken: the manager computes and writes files in between.
  static constexpr Duration kQuiet = sec(1);

  [[nodiscard]] u32 add_node(const NodeConfig& config);
  void join(PortPlace a, PortPlace b, LinkKind kind);

  // --- inputs
  // By a program of a channel adapter, from QP 0 or QP 1. slid, and of a request the path, are
  // filled in.
  void send(PortPlace from, Datagram datagram, Time now);
  // Pulls the cable of that port, or puts it in again.
  void set_plugged(PortPlace at, bool plugged, Time now);
  // A subnet manager runs there, or has ended. IBTA 14.2.5.6, IsSM.
  void set_manager(PortPlace at, bool is_manager, Time now);
  void set_traffic(PortPlace at, const PortTraffic& traffic) { port_at(at).traffic = traffic; }
  // A packet whose P_Key is not in the port's table has come: trap 257.
  void on_p_key_violation(PortPlace at, u16 p_key, u16 slid, u32 source_qp, u32 destination_qp,
                          Time now);
  // So many packets have come with errors on the link. Beyond the threshold in PortInfo's
  // LocalPhyErrors the link's integrity is in doubt: trap 129. IBTA 7.12.2
  void on_link_errors(PortPlace at, u64 count, Time now);
  // Errors of the flow control of a link that is up: packets beyond the credits that the port gave
  // (trap 130, 7.12.3), and no flow control packets for so long that the link recovers (trap
  // 131, 7.9.4).
  void on_buffer_overrun(PortPlace at, Time now);
  void on_flow_control_timeout(PortPlace at, Time now);
  // The node has no power, or has it again: then it knows nothing of what a manager has written.
  void set_power(u32 node, bool on, Time now);
  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;

  // --- outputs
  [[nodiscard]] std::optional<Delivery> poll_delivery();
  [[nodiscard]] std::optional<PortEvent> poll_event();
  // Returns whether forwarding tables or the states of ports have changed since the last call.
  [[nodiscard]] bool take_changed() { return std::exchange(changed_, false); }

  [[nodiscard]] const Node& node(u32 index) const { return nodes_[index]; }
  [[nodiscard]] u32 size() const { return static_cast<u32>(nodes_.size()); }
  [[nodiscard]] const NodePort& port(PortPlace at) const { return nodes_[at.node].ports[at.port]; }

 private:
  struct Trap {
    PortPlace from;  // the port whose LID it bears
    u16 number = 0;
    Datagram datagram;
    Time again;
    bool is_repressed = false;  // it only keeps others of its number back until `again`
  };

  struct LateTrap {
    PortPlace from;
    Time since;
  };

  NodePort& port_at(PortPlace at) { return nodes_[at.node].ports[at.port]; }
  [[nodiscard]] bool is_up(PortPlace at) const;
  [[nodiscard]] std::optional<PortPlace> next_hop(PortPlace from, bool needs_active) const;
  // Returns the port that a packet from `from` to the LID reaches; nullopt if it reaches none.
  [[nodiscard]] std::optional<PortPlace> route(PortPlace from, u16 dlid, bool needs_active) const;

  void send_directed(PortPlace from, Datagram datagram, Time now);
  void go_on_directed(PortPlace at, Datagram datagram, Time now);
  void return_directed(PortPlace at, Datagram datagram);
  void send_routed(PortPlace from, Datagram datagram, Time now);
  void arrive(PortPlace at, Datagram datagram, Time now);
  void take_smp(PortPlace at, Datagram datagram, Time now);
  void answer(PortPlace at, Datagram datagram, Time now);
  void deliver(PortPlace at, Datagram datagram);

  void apply(PortPlace at, const SMPOutcome& outcome, Time now);
  void change_link(PortPlace at, SMPOutcome::Link change, Time now);
  void set_link_up(PortPlace at, bool up);
  void settle_link(PortPlace at, Time now);
  void tell(PortPlace at, const PortChanges& changes);
  void note_link_change(u32 node, Time now);

  void send_trap(PortPlace from, u8 type, u16 number, Attribute details, Time now);
  void send_trap_128(u32 node, Time now);
  void send_link_trap(PortPlace at, u16 number, Time now);
  void send_trap_144(PortPlace at, Time now);
  void send_late_traps(Time now);
  [[nodiscard]] bool can_send_trap(PortPlace at) const;
  // Returns when a late trap may be sent; never() if its port has no manager yet.
  [[nodiscard]] Time time_of(const LateTrap& late) const;
  void send_trap_256(PortPlace at, const Datagram& refused, Time now);
  void repress(PortPlace at, const Datagram& datagram);

  std::vector<Node> nodes_;
  std::deque<Delivery> deliveries_;
  std::deque<PortEvent> events_;
  std::vector<Trap> traps_;
  u32 next_trap_ = 1;
  // Ports whose capabilities have changed before they had a manager to tell: they send trap 144
  // after its sweep.
  std::vector<LateTrap> late_traps_;
  Time last_set_;
  bool changed_ = false;
};

}  // namespace verbena::management
