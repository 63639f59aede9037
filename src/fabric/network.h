// Network: hosts and switches joined by links, and the flows that go through them, in simulated
// time. Everything random comes from one seed; the same input gives the same output, bit for bit,
// whatever the number of threads.
//
// Time advances in windows (windows.h). The actions of a node within a window reach no other node
// before its end, so nodes are simulated one after another, or by several threads, each with its
// own domain. Actions that concern several nodes happen between windows: flows are given their QPs
// at both ends, and events are reported.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fabric/application.h"
#include "fabric/crew.h"
#include "fabric/deadlock.h"
#include "fabric/host.h"
#include "fabric/infiniband/infiniband_switch.h"
#include "fabric/infiniband/managed_tables.h"
#include "fabric/network_faults.h"
#include "fabric/packet_faults.h"
#include "fabric/path_log.h"
#include "fabric/switch.h"
#include "fabric/tcp/tcp_host_config.h"
#include "fabric/technology.h"

namespace verbena::fabric {

// The virtual function of one host.
struct HostFunction {
  NodeIndex node = 0;
  FunctionConfig function{};
};

struct NetworkConfig {
  static constexpr u32 kLongestFrame = 4096 + 100;  // bytes: the largest path MTU, with headers

  Technology technology = Technology::kRoCEv2;
  // Return the configuration of a host, by its fastest link, and of a port of a switch, by its
  // link.
  std::function<HostConfig(const LinkConfig& link)> host = [](const LinkConfig&) {
    return HostConfig{};
  };
  TCPHostConfig tcp{};  // of hosts that speak iWARP or TCP
  std::function<SwitchPortConfig(const LinkConfig& link)> switch_port = [](const LinkConfig& link) {
    return SwitchPortConfig{
        .buffer = {.headroom = headroom_for(link.rate, link.delay, kLongestFrame)}};
  };
  SwitchConfig switches{};        // of Ethernet
  InfiniBandConfig infiniband{};  // instead of it
  Clock clock = Clock::kPicoseconds;
  u32 gap_bytes = 0;           // of the wire's time that each frame takes besides its bytes
  double link_error_rate = 0;  // of each link that has none of its own
  ParallelLinks parallel_links = ParallelLinks::kAll;
  NetworkFaults faults{};
  std::vector<HostFunction> functions{};  // in place of HostConfig's
  Duration deadlock_check = ms(1);        // queues that are paused so long are looked at; 0: never
  // The least latency of an application's signals. The shorter it is, the less is simulated at a
  // time; with 0 one thread simulates all nodes together.
  Duration shortest_signal = ps(i64{1} << Agenda::kMaxWindowBits);
  u64 seed = 1;
  u32 threads = 1;  // that simulate, the caller's among them
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

  // Flows are numbered in the order in which they are added. Returns false if there is no path
  // between the two hosts, which are different ones. The flow starts at `flow.start`, and not
  // before now().
  [[nodiscard]] bool add_flow(const Flow& flow);
  void set_trace(Trace* trace) { trace_ = trace; }

  // --- for an application (application.h)
  void set_application(Application* application) { application_ = application; }
  // Between runs. Connections are numbered in the order in which they are made. Returns false as
  // add_flow() does.
  [[nodiscard]] bool connect(const ConnectionConfig& config);
  // Like connect(), but the connection has QPs only while they are used: from the window after
  // open_connection(), or the first message, to that after close_connection(), by when all messages
  // have to be acknowledged. Then it may be opened again. The host that sends calls both, as it
  // calls send().
  [[nodiscard]] bool plan_connection(const ConnectionConfig& config);
  void open_connection(u32 connection);
  void close_connection(u32 connection);
  // The others are called between runs, and from the application's calls for the host that sends or
  // sets. At most kMaxMessageBytes, and no more messages than `depth` between send() and
  // on_sent().
  void send(u32 connection, u32 bytes, u32 word);
  void set_alarm(NodeIndex host, Time at, u32 word);  // on_alarm() then
  // Sets an alarm at another host, later than now by at least the shortest_signal.
  void signal(NodeIndex from, NodeIndex to, Time at, u32 word);

  // Runs all events up to and including `end`. Returns false if no event is left.
  bool run(Time end);

  [[nodiscard]] Time now() const { return now_; }  // the last event's, between runs
  // Returns, between runs, the time before which nothing happens; never() if no event is left.
  [[nodiscard]] Time next_event() const;
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] const Routes& routes() const { return routes_; }
  // Returns the ports by which `node` sends packets for the host.
  [[nodiscard]] std::span<const u16> ways(NodeIndex node, NodeIndex destination) const {
    return tables_ ? tables_->ports(node, destination) : routes_.ports(node, destination);
  }
  [[nodiscard]] const Port& port(NodeIndex node, u32 number) const {
    return ports_[first_port_[node] + number];
  }
  // Returns a UDP source port by which flows of RoCE leave the host by that port of its NIC: the
  // `which`-th of those that exist. So programs that know the hash spread connections evenly (Qian
  // et al., Alibaba HPN, SIGCOMM 2024, 6).
  [[nodiscard]] u16 source_port_for(NodeIndex source, NodeIndex destination, u32 port,
                                    u32 which) const;
  [[nodiscard]] u32 ports_of(NodeIndex node) const {  // how many
    return first_port_[node + 1] - first_port_[node];
  }
  [[nodiscard]] NodeIndex node_of(u32 port) const { return ports_[port].node; }  // of all ports
  [[nodiscard]] u32 flows_finished() const { return finished_; }
  [[nodiscard]] u32 flows_failed() const { return failed_; }
  // Returns the rate at which the flow may send now, by its congestion control; nullopt if it has
  // none, or has ended.
  [[nodiscard]] std::optional<Rate> rate_of(u32 flow) const;
  // Returns the first deadlock that was found.
  [[nodiscard]] const std::optional<Deadlock>& deadlock() const { return deadlock_; }
  [[nodiscard]] u64 frames_in_flight() const;
  // Calls visit(node, port, bytes) for each port of a switch with its longest queue.
  void for_each_longest_queue(const std::function<void(NodeIndex, u32, u32)>& visit) const;
  // Returns the bytes of the frames that this port has sent.
  [[nodiscard]] u64 sent_bytes(NodeIndex node, u32 port) const {
    return switches_[node] != nullptr ? switches_[node]->sent_bytes(port)
                                      : hosts_[node]->sent_bytes(port);
  }
  // Likewise, but until `at`, a time up to which the network has run.
  [[nodiscard]] u64 sent_bytes(NodeIndex node, u32 port, Time at) const {
    return sent_bytes(node, port) - this->port(node, port).bytes_to_send(at);
  }
  // Returns nullptr for a host.
  [[nodiscard]] const SwitchNode* switch_at(NodeIndex node) const { return switches_[node].get(); }
  // Returns how long this port had something to send and no credits. InfiniBand's.
  [[nodiscard]] Duration waited_for_credits(NodeIndex node, u32 port) const {
    return switches_[node] != nullptr ? switches_[node]->waited_for_credits(port, now_)
                                      : hosts_[node]->waited_for_credits(now_);
  }
  // Return, on InfiniBand, the packets that the port has sent, and those that arrived by it without
  // a path onward.
  [[nodiscard]] PacketCount sent_packets(NodeIndex node, u32 port) const {
    return switches_[node] != nullptr ? switches_[node]->sent_packets(port)
                                      : hosts_[node]->sent_packets();
  }
  [[nodiscard]] u64 dropped_packets(NodeIndex node, u32 port) const {
    return switches_[node] != nullptr ? switches_[node]->dropped_packets(port) : 0;
  }
  // Returns the tables that forward packets of live processes. They change between runs.
  [[nodiscard]] ManagedTables& managed_tables() { return managed_; }
  // Between runs: connects or disconnects the link, by number, from now on. Routes stay.
  void set_link(u32 link, bool up);
  // Likewise sets the probability that a frame on the link, by number, is lost to an error, both
  // ways.
  void set_error_rate(u32 link, double probability);
  // Returns the frames of live processes that were lost to errors on the link before this port.
  [[nodiscard]] u64 corrupted_packets(NodeIndex node, u32 port) const {
    return corrupted_.empty() ? 0 : corrupted_[first_port_[node] + port];
  }
  // Keeps the frames that this port sends for take_tapped(), from now on.
  void tap(NodeIndex node, u32 port) { ports_[first_port_[node] + port].tapped = true; }
  // Returns the frames since the last call, in the order in which they were sent.
  [[nodiscard]] std::vector<SentFrame> take_tapped();
  // Precondition: it has a device, as all of technologies other than iWARP and TCP.
  [[nodiscard]] Host& host(NodeIndex node) { return static_cast<Host&>(*hosts_[node]); }
  [[nodiscard]] Repairs repairs() const;  // of all hosts

  // Notes by which ports frames go, from now on: before the first run.
  void log_paths();
  // Return the ports that sent the frames of a flow, from the source on; several of a node where
  // its frames were spread or rerouted. Empty if no path was noted. For a connection: since it was
  // opened last.
  [[nodiscard]] std::vector<PathHop> path_of_flow(u32 flow) const;
  [[nodiscard]] std::vector<PathHop> path_of_connection(u32 connection) const;

 private:
  struct FlowEnds {
    EndNumber sender = kNoEnd, receiver = kNoEnd;
    bool is_told_by_receiver = false;  // that it is finished; else by the sender
  };
  struct Start {
    Time at;
    u32 flow;
    bool operator>(const Start& other) const {
      return at != other.at ? at > other.at : flow > other.flow;
    }
  };
  class Finisher;

  void add_ports(const Topology& topology, const NetworkConfig& config);
  void reserve_frames();
  void add_nodes(const Topology& topology, const NetworkConfig& config);
  void add_switch(NodeIndex node, const NetworkConfig& config, PRNG& prng);
  void add_infiniband_switch(NodeIndex node, const NetworkConfig& config);
  void add_host(NodeIndex node, const NetworkConfig& config, PRNG& prng);
  const Duration* times_of(Rate rate, const NetworkConfig& config);

  struct Change {
    enum class Kind : u8 { kLinkDown, kLinkUp, kRoutes, kPause, kResume };
    Time at;
    Kind kind;
    u32 subject;  // link, or the number of the stuck pause
  };

  void plan(const NetworkFaults& faults);
  void add_filters(const std::vector<LinkRules>& all, u64 seed);
  std::array<u32, 2> places_of(u32 link) const;
  void apply(const Change& change);
  void change_link(u32 link, bool up);
  void change_routes();
  void change_pause(const StuckPause& pause, bool on);
  void look_for_deadlock(Time now);
  void check_for_deadlock(Time now);  // and says when to look again
  bool advance(Time end);
  [[nodiscard]] u64 next_window(u64 from) const;
  [[nodiscard]] u64 window_of(const Start& start) const;
  void open_flows(u64 window, Time reached);
  void do_requests(Time now);
  void do_request(const ConnectionRequest& request);
  void make_ends(u32 connection);
  [[nodiscard]] Domain& domain_of_sender(u32 connection) {
    return domain_of(connections_[connection].source);
  }
  void open(u32 flow);
  void simulate_window();
  void simulate(Domain& domain);
  void simulate_node(Domain& domain);
  void fetch_ahead(const Domain& domain) const;
  struct Place {  // where events happen
    u32 first_port;
    SwitchNode* at_switch;  // nullptr for a host
    Endpoint* host;         // nullptr for a switch
  };
  [[nodiscard]] Place place_of(NodeIndex node) const {
    return {first_port_[node], switches_[node].get(), hosts_[node].get()};
  }
  [[nodiscard]] Duration known_since(const Event& event) const;
  void handle(Domain& domain, const Event& event, const Place& place);
  void lose(const Event& event, u64& counter);
  bool survives(Domain& domain, const Event& event);
  QPN sender_of(const Frame& frame) const;
  bool passes(Domain& domain, const Event& event, std::vector<PacketFilter>& filters);
  void collect(Domain& domain, Endpoint& host);
  void close_window();
  void tell(Time end);
  void finish(u32 flow);
  void fail(u32 flow);
  void end(u32 flow);
  void hand_over(Domain& domain, Endpoint& host);
  void join(const Flow& ends, EndNumber sender, EndNumber receiver);
  [[nodiscard]] std::vector<PathHop> path_of(const PathKey& key) const;
  void note_source_port(std::vector<u16>& ports, u32 number, NodeIndex source, EndNumber end);
  Domain& domain_of(NodeIndex node) { return *domains_[domain_of_[node]]; }

  const Topology& topology_;
  const ParallelLinks parallel_links_;
  Routes routes_;
  std::optional<ForwardingTables> tables_;  // InfiniBand's
  ManagedTables managed_;                   // likewise
  const RoutingEngine engine_;              // their
  const std::vector<u32> domain_of_;        // of each node
  const std::vector<u32> node_of_port_;     // of all ports
  const std::vector<u8> side_of_port_;      // likewise; empty: windows are not divided by sides
  const Windows windows_;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::vector<u32> addresses_;
  std::vector<std::pair<Rate, std::unique_ptr<TransmissionTimes>>> times_;
  std::vector<Port> ports_;
  std::vector<u32> first_port_;                        // of each node, and the end
  std::vector<std::unique_ptr<SwitchNode>> switches_;  // by node; nullptr for a host
  std::vector<std::unique_ptr<Endpoint>> hosts_;
  std::vector<std::unique_ptr<PathLog>> path_logs_;  // by node; empty: log_paths() was not called
  std::vector<u16> flow_ports_, connection_ports_;   // UDP source ports, where paths are noted
  std::vector<PRNG> errors_;                         // of each node
  std::vector<u64> corrupted_;                       // by place; empty: no error rate was set
  std::vector<std::vector<PacketFilter>> filters_;   // by the port of all where frames arrive
  bool is_faulty_ = false;                           // not all that is sent has to arrive
  bool orders_by_cause_ = false;  // of what happens at the same time: with ns-3's clock
  std::vector<Flow> flows_;
  std::vector<FlowEnds> ends_;
  std::vector<Start> starts_;  // of flows that have no QPs yet: a heap
  u32 finished_ = 0, failed_ = 0;
  std::vector<Change> changes_;  // to come, the last first
  std::vector<StuckPause> stuck_pauses_;
  std::vector<bool> down_;        // links; empty: no link ever is
  std::vector<Time> deaf_until_;  // of each port: what arrives until then was on a link that failed
  const Duration deadlock_check_;
  Time next_deadlock_check_;
  std::optional<Deadlock> deadlock_;
  std::vector<ConnectionConfig> connections_;
  std::vector<EndNumber> connection_senders_, connection_receivers_;  // kNoEnd: not open
  // For each connection, by its sender's calls: whether it has no ends, or is about to lose them.
  // Messages wait then.
  std::vector<u8> connection_is_shut_;
  Application* application_ = nullptr;
  Trace* trace_ = nullptr;
  TraceBuffer told_;  // by all domains
  Time now_;
  Time end_;                                    // of the run
  u64 window_ = 0;                              // being simulated
  u64 events_before_ = 0, events_of_last_ = 0;  // windows
  std::unique_ptr<Crew> crew_;
};

}  // namespace verbena::fabric
