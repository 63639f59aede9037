// LiveFabric: a scenario's network that carries packets of live processes, beside the flows of the
// scenario itself. A process runs on one of its hosts: its packets wait in that host's NIC for
// their turn and for pauses, and go on as simulated frames of the same size. Sans-IO: the caller
// passes packets and the time in by calls, takes packets out, and decides how simulated and real
// time belong together. docs/live_fabric.md
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "fabric/live/latency_histogram.h"
#include "fabric/live/live_packet.h"
#include "fabric/live/paused_time.h"
#include "fabric/scenario/scenario.h"

namespace verbena::fabric {

// LiveFigures: the traffic that live processes have sent and received on one host. Bytes are those
// of whole frames on the link.
struct LiveFigures {
  struct Way {
    u64 packets = 0, bytes = 0;
    Time first = Time::never(), last;  // of data
    u64 bytes_after_first = 0;
    // Returns the rate of the data, from the end of the first packet to that of the last; 0 if
    // there were fewer than two.
    [[nodiscard]] double bits_per_second() const;
  };
  Way sent, received;        // sent: the data that was given to the NIC
  u64 marked = 0;            // of those received: congestion experienced
  LatencyHistogram latency;  // of those received: from the sender's NIC, its queue included
  PausedTime paused;
};

class LiveFabric final : private Application, private Trace {
 public:
  // `scenario` outlives it, and is of RoCEv2 or InfiniBand (mistake_in()).
  explicit LiveFabric(const Scenario& scenario);

  // --- on InfiniBand
  [[nodiscard]] bool is_infiniband() const {
    return scenario_.network.technology == Technology::kInfiniBand;
  }
  // Bytes of a LivePacket at most; 0 .. these may be sent.
  [[nodiscard]] std::size_t most_bytes() const;
  // Sets the tables that a subnet manager has written for a switch: see ManagedTables::set().
  void set_tables(NodeIndex node, std::vector<u16> unicast,
                  std::vector<std::vector<u16>> multicast) {
    network_.managed_tables().set(node, std::move(unicast), std::move(multicast));
  }
  void set_link(u32 link, bool up) { network_.set_link(link, up); }
  void set_error_rate(u32 link, double rate) { network_.set_error_rate(link, rate); }
  [[nodiscard]] const Network& network() const { return network_; }
  // Returns why no process can use it; "" if one can.
  [[nodiscard]] static std::string mistake_in(const Scenario& scenario);
  // Returns the error in the scenario's own flows; "" if there is none.
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

  // Sends the packet now, to the NIC of its source. Its `bytes` are a BTH and an ICRC at least,
  // and kMostBytes at most.
  static constexpr std::size_t kMostBytes = 4096 + 128;
  void send(LivePacket packet);
  // Runs all events until then. Afterwards now() is that time.
  void run(Time until);
  [[nodiscard]] Time now() const { return now_; }
  // Returns the time before which nothing happens if nothing is sent; never() if no event is left.
  [[nodiscard]] Time next_event() const { return network_.next_event(); }

  // Returns the packets that have arrived at their destination, in the order of time; the caller
  // removes them.
  [[nodiscard]] std::vector<LivePacket>& arrived() { return arrived_; }
  // Returns the data that has left NICs, likewise.
  [[nodiscard]] std::vector<LeftPacket>& left() { return left_; }

  [[nodiscard]] const LiveFigures& figures(NodeIndex host) const { return figures_[host]; }
  [[nodiscard]] Rate rate_of(NodeIndex host) const { return network_.port(host, 0).rate; }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  // Lines for a terminal: one host; the whole network.
  [[nodiscard]] std::string text_of(NodeIndex host) const;
  [[nodiscard]] std::string text() const;

 private:
  void on_arrival(u32, u32, Time) override {}
  void on_sent(u32, Time) override {}
  void on_alarm(u32 host, Time now) override;
  void on_flow_finished(u32, Time) override {}
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override;
  void make_live(NodeIndex host);
  void collect();

  const Scenario& scenario_;
  Network network_;
  std::string mistake_;
  Time now_;
  std::vector<std::deque<LivePacket>> given_;  // by host; each has an alarm
  std::vector<NodeIndex> live_;                // hosts that packets have gone to or come from
  std::vector<bool> is_live_;
  std::vector<LiveFigures> figures_;
  std::vector<LivePacket> arrived_;
  std::vector<LeftPacket> left_;
};

}  // namespace verbena::fabric
