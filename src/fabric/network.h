// Network: hosts and switches joined by links, and the flows that go through them, in simulated
// time. Everything random comes from one seed; the same input gives the same output, bit for bit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fabric/application.h"
#include "fabric/host.h"
#include "fabric/switch.h"

namespace verbena::fabric {

struct NetworkConfig {
  static constexpr u32 kLongestFrame = 4096 + 100;  // octets: the largest path MTU, with headers

  // What a host, and a port of a switch, are like, from their link.
  std::function<HostConfig(const LinkConfig& link)> host = [](const LinkConfig&) {
    return HostConfig{};
  };
  std::function<SwitchPortConfig(const LinkConfig& link)> switch_port = [](const LinkConfig& link) {
    return SwitchPortConfig{
        .buffer = {.headroom = headroom_for(link.rate, link.delay, kLongestFrame)}};
  };
  SwitchConfig switches{};
  Clock clock = Clock::kPicoseconds;
  double link_error_rate = 0;  // of each link, beside its own
  u64 seed = 1;
};

// The IPv4 address of a node, in host order.
[[nodiscard]] constexpr u32 address_of(NodeIndex node) {
  return 0x0b000001 + ((node / 256) << 16) + ((node % 256) << 8);
}
inline constexpr u32 kMaxNodes = 1u << 16;

class Network {
 public:
  // `topology` has nothing wrong (check()) and outlives it; at most kMaxNodes nodes.
  Network(const Topology& topology, const NetworkConfig& config);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Flows are numbered in the order in which they are added. False: there is no way between the two
  // hosts, which are different ones.
  [[nodiscard]] bool add_flow(const Flow& flow);
  void set_trace(Trace* trace) { domain_.trace = trace; }

  // --- for an application, before run() and from its calls
  void set_application(Application* application) { application_ = application; }
  // Connections are numbered in the order in which they are made. False: as for flows.
  [[nodiscard]] bool connect(const ConnectionConfig& config);
  // At most kMaxMessageOctets, and no more messages than `depth` between send() and on_sent().
  void send(u32 connection, u32 octets, u32 word);
  void set_alarm(Time at, u32 word);  // on_alarm() then; word: below 2^29

  // All events up to `end`, that included. False: there is nothing left to happen.
  bool run(Time end);

  [[nodiscard]] Time now() const { return domain_.now; }
  [[nodiscard]] const Counters& counters() const { return domain_.counters; }
  [[nodiscard]] const Routes& routes() const { return routes_; }
  [[nodiscard]] const Port& port(NodeIndex node, u32 number) const {
    return ports_[first_port_[node] + number];
  }
  [[nodiscard]] NodeIndex node_of(u32 port) const { return ports_[port].node; }  // of all ports
  [[nodiscard]] u32 flows_finished() const { return finished_; }
  [[nodiscard]] u64 frames_in_flight() const { return domain_.frames.in_use(); }
  // visit(node, port, octets) for each port of a switch: its longest queue.
  void for_each_longest_queue(const std::function<void(NodeIndex, u32, u32)>& visit) const;
  [[nodiscard]] Host& host(NodeIndex node) { return *hosts_[node]; }

 private:
  struct FlowEnds {
    QueuePair* sender = nullptr;
    QueuePair* receiver = nullptr;
  };

  void add_ports(const Topology& topology, const NetworkConfig& config);
  void add_nodes(const Topology& topology, const NetworkConfig& config);
  void add_switch(NodeIndex node, const NetworkConfig& config, PRNG& prng);
  void add_host(NodeIndex node, const NetworkConfig& config, PRNG& prng);
  const Duration* times_of(Rate rate, Clock clock);

  void prefetch() const;
  void handle(const Event& event);
  void on_arrival(const Event& event);
  void start(u32 flow);
  void settle(Host& host);
  void finish(Host& sender);
  void hand_over(Host& host);
  void join(const Flow& ends, QueuePair* sender, QueuePair* receiver);

  Domain domain_;
  const Routes routes_;
  std::vector<u32> addresses_;
  std::vector<std::pair<Rate, std::unique_ptr<TransmissionTimes>>> times_;
  std::vector<Port> ports_;
  std::vector<u32> first_port_;                    // of each node, and the end
  std::vector<std::unique_ptr<Switch>> switches_;  // by node; nullptr: a host
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Flow> flows_;
  std::vector<FlowEnds> ends_;
  u32 finished_ = 0;
  std::vector<ConnectionConfig> connections_;
  std::vector<QueuePair*> connection_senders_;
  Application* application_ = nullptr;
  std::vector<Host::Message> delivered_;  // being handed over
  PRNG errors_;
};

}  // namespace verbena::fabric
