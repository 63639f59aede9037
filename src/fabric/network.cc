#include "fabric/network.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/prefetch.h"
#include "fabric/partition.h"
#include "fabric/tcp/tcp_host.h"
#include "wire/eth/ecn.h"

namespace verbena::fabric {
namespace {

constexpr Duration kLongestWindow = ps(i64{1} << Agenda::kMaxWindowBits);
// With shorter windows, a node has too little to do at a time.
constexpr Duration kShortestWindow = ns(100);
constexpr Duration kNoNotice = ps(1);  // a window where there is none
constexpr u64 kEventsOfAMember = 50;   // that are worth to wake it
constexpr std::size_t kFetched = 8;    // arrivals of the next nodes, likewise
constexpr std::size_t kFramesOfPort = 128, kMostFrames = 1u << 22;  // that addresses are kept for
constexpr u32 kAhead = 16;  // events that what they need is fetched before

Duration shortest_delay(const Topology& topology) {
  Duration shortest = kLongestWindow;
  for (const TopologyLink& link : topology.links) shortest = std::min(shortest, link.config.delay);
  return shortest;
}

// Returns the notice: no action of a node affects another one earlier than that.
Duration notice(const Topology& topology, const NetworkConfig& config) {
  return std::min(shortest_delay(topology), config.shortest_signal);
}

// Returns the notice of a link, for windows that alternate.
Duration notice_of_sides(const Topology& topology) {
  return std::min(shortest_delay(topology), kLongestWindow / 2);
}

// Returns the side of each port's node; empty if windows must not alternate, since signals would
// arrive too early.
std::vector<u8> sides_of_ports(const Topology& topology, const NetworkConfig& config,
                               const std::vector<u32>& node_of_port) {
  const Duration notice = notice_of_sides(topology);
  if (notice < kShortestWindow || config.shortest_signal < notice * 2) return {};
  const std::vector<u8> sides = sides_of(topology);
  if (sides.empty()) return {};
  std::vector<u8> of_ports;
  for (const u32 node : node_of_port) of_ports.push_back(sides[node]);
  return of_ports;
}

// Without notice there is no time in which nodes can be simulated by themselves.
Windows windows_for(const Topology& topology, const NetworkConfig& config,
                    const std::vector<u8>& side_of_port) {
  if (side_of_port.empty()) return Windows(std::max(notice(topology, config), kNoNotice));
  return {notice_of_sides(topology), side_of_port};
}

// Prefetches the data that the event touches first. (GCC takes a function that only prefetches for
// one without effect, and leaves its calls out unless they are inlined.)
[[gnu::always_inline]] inline void prefetch(const Domain& domain, const Event* event) {
  if (event != nullptr && event->kind() == EventKind::kArrival)
    domain.frames.prefetch(event->subject);
}

// Returns one if there is no notice: then nothing can be simulated at the same time.
u32 domains_for(const Topology& topology, const NetworkConfig& config) {
  return notice(topology, config).ps() == 0
             ? 1
             : std::max(1u, std::min(config.threads, topology.nodes));
}

std::vector<u32> ports_of_nodes(const Topology& topology) {
  std::vector<u32> first(topology.nodes + 1);
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) ++first[node + 1];
  for (NodeIndex node = 0; node < topology.nodes; ++node) first[node + 1] += first[node];
  return first;
}

std::vector<u32> nodes_of_ports(const Topology& topology) {
  const std::vector<u32> first = ports_of_nodes(topology);
  std::vector<u32> nodes(first.back());
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    std::fill(nodes.begin() + first[node], nodes.begin() + first[node + 1], node);
  return nodes;
}

void mark(Frame& frame) {
  if (ecn_of(frame.traffic_class) == ECN::kNotECT) return;
  frame.traffic_class = traffic_class_of(dscp_of(frame.traffic_class), ECN::kCE);
}

void deliver_later(Domain& domain, Event arrival, FrameIndex index, Duration late) {
  domain.frames[index].is_judged = true;
  arrival.at = arrival.at + late;
  arrival.subject = index;
  domain.events.add(arrival);
}

}  // namespace

Network::Network(const Topology& topology, const NetworkConfig& config)
    : topology_(topology),
      parallel_links_(config.parallel_links),
      routes_(topology, {}, parallel_links_),
      managed_(topology.nodes),
      engine_(config.infiniband.routing),
      domain_of_(partition(topology, domains_for(topology, config))),
      node_of_port_(nodes_of_ports(topology)),
      side_of_port_(sides_of_ports(topology, config, node_of_port_)),
      windows_(windows_for(topology, config, side_of_port_)),
      first_port_(ports_of_nodes(topology)),
      deadlock_check_(config.deadlock_check),
      next_deadlock_check_(deadlock_check_ == Duration{} ? Time::never()
                                                         : Time() + deadlock_check_) {
  CHECK(topology.nodes <= kMaxNodes);
  const u32 domains = domains_for(topology, config);
  for (u32 number = 0; number < domains; ++number) {
    domains_.push_back(std::make_unique<Domain>(windows_, node_of_port_, number, domains));
    if (domains == 1 && windows_.length() < kShortestWindow)
      domains_.back()->events.keep_together();
  }
  for (NodeIndex node = 0; node < topology.nodes; ++node) addresses_.push_back(address_of(node));
  if (config.technology == Technology::kInfiniBand) tables_.emplace(topology, engine_);
  add_ports(topology, config);
  reserve_frames();
  add_nodes(topology, config);
  plan(config.faults);
  add_filters(config.faults.rules, config.seed);
  orders_by_cause_ = config.clock == Clock::kNanoseconds;
  is_faulty_ = !deaf_until_.empty() || !filters_.empty() ||
               std::ranges::any_of(ports_, [](const Port& port) { return port.error_rate > 0; });
  crew_ = std::make_unique<Crew>(domains, [this](u32 domain) { simulate(*domains_[domain]); });
}

Network::~Network() = default;

const Duration* Network::times_of(Rate rate, const NetworkConfig& config) {
  for (const auto& [known, times] : times_)
    if (known == rate) return times->data();
  times_.emplace_back(rate,
                      std::make_unique<TransmissionTimes>(rate, config.clock, config.gap_bytes));
  return times_.back().second->data();
}

void Network::add_ports(const Topology& topology, const NetworkConfig& config) {
  ports_.resize(first_port_.back());
  std::vector<u32> used(topology.nodes);
  const auto add = [&](NodeIndex node, const LinkConfig& link) -> u32 {
    const u32 number = used[node]++;
    Port& port = ports_[first_port_[node] + number];
    port.times = times_of(link.rate, config);
    port.delay = link.delay;
    port.node = node;
    port.number = static_cast<u16>(number);
    port.rate = link.rate;
    port.error_rate =
        static_cast<float>(link.error_rate > 0 ? link.error_rate : config.link_error_rate);
    return first_port_[node] + number;
  };
  for (const TopologyLink& link : topology.links) {
    const u32 a = add(link.a, link.config), b = add(link.b, link.config);
    ports_[a].peer = b;
    ports_[b].peer = a;
    ports_[a].peer_domain = static_cast<u16>(domain_of_[link.b]);
    ports_[b].peer_domain = static_cast<u16>(domain_of_[link.a]);
  }
}

void Network::reserve_frames() {
  std::vector<std::size_t> ports(domains_.size());
  for (const Port& port : ports_) ++ports[domain_of_[port.node]];
  for (const auto& domain : domains_)
    domain->frames.reserve(std::min(kFramesOfPort * ports[domain->number], kMostFrames));
}

void Network::add_nodes(const Topology& topology, const NetworkConfig& config) {
  PRNG prng(config.seed), errors(~config.seed);
  switches_.resize(topology.nodes);
  hosts_.resize(topology.nodes);
  for (NodeIndex node = 0; node < topology.nodes; ++node) {
    errors_.push_back(errors.fork());
    if (topology.is_switch[node])
      tables_ ? add_infiniband_switch(node, config) : add_switch(node, config, prng);
    else if (first_port_[node] != first_port_[node + 1])
      add_host(node, config, prng);
  }
}

void Network::add_switch(NodeIndex node, const NetworkConfig& config, PRNG& prng) {
  const u32 first = first_port_[node];
  const std::span<Port> ports(ports_.data() + first, first_port_[node + 1] - first);
  std::vector<SwitchPortConfig> port_configs;
  for (const Port& port : ports) port_configs.push_back(config.switch_port(link_of(port)));
  const ForwardingConfig& forwarding = config.switches.forwarding;
  for (const Port& port : ports) {
    ports_[port.peer].latency_ps = static_cast<u32>(forwarding.latency.ps());
    if (forwarding.mode == ForwardingConfig::Mode::kCutThrough)
      ports_[port.peer].head_bytes = ForwardingConfig::kHeadBytes;
  }
  SwitchConfig own = config.switches;
  own.hash_seed = node;
  own.seed = prng.next();
  switches_[node] = std::make_unique<Switch>(domain_of(node), own, node, ports, first,
                                             std::move(port_configs), routes_, addresses_);
}

void Network::add_infiniband_switch(NodeIndex node, const NetworkConfig& config) {
  const u32 first = first_port_[node];
  const std::span<Port> ports(ports_.data() + first, first_port_[node + 1] - first);
  for (const Port& port : ports) {
    ports_[port.peer].latency_ps = static_cast<u32>(config.infiniband.latency.ps());
    if (config.infiniband.cuts_through) ports_[port.peer].head_bytes = kLRHBytes;
  }
  switches_[node] = std::make_unique<InfiniBandSwitch>(domain_of(node), config.infiniband, node,
                                                       ports, first, *tables_, managed_);
}

void Network::add_host(NodeIndex node, const NetworkConfig& config, PRNG& prng) {
  const u32 first = first_port_[node];
  const std::span<Port> ports(ports_.data() + first, first_port_[node + 1] - first);
  const LinkConfig fastest = link_of(*std::ranges::max_element(ports, {}, &Port::rate));
  HostConfig own = config.host(fastest);
  for (const SlowReceiver& slow : config.faults.slow_receivers)
    if (slow.node == node) own.receiver = slow.receiver;
  for (const HostFunction& function : config.functions)
    if (function.node == node) own.function = function.function;
  if (speaks_tcp(config.technology)) {
    CHECK(ports.size() == 1);
    hosts_[node] = std::make_unique<TCPHost>(domain_of(node), config.tcp, own.receiver, node,
                                             ports.front(), first);
    return;
  }
  own.device.gids = {{.gid = GID::from_ipv4(addresses_[node])}};
  own.device.seed = prng.next();
  if (tables_) {
    CHECK(ports.size() == 1);
    be_on_infiniband(own, config.infiniband, fastest);
  }
  hosts_[node] = std::make_unique<Host>(domain_of(node), std::move(own), node, ports, first,
                                        routes_, addresses_);
}

bool Network::add_flow(const Flow& flow) {
  if (routes_.ports(flow.source, flow.destination).empty()) return false;
  starts_.push_back({std::max(flow.start, now_), static_cast<u32>(flows_.size())});
  std::ranges::push_heap(starts_, std::greater{});
  flows_.push_back(flow);
  ends_.emplace_back();
  return true;
}

bool Network::run(Time end) {
  do_requests(now_);  // those made between the runs
  // Flows that start one after another get their QPs between windows of all nodes: the number of a
  // QP, and its first turn among those of its host, depend on when the QP is made.
  if (windows_.order() == Windows::Order::kAlternate && now_ == Time() && !starts_.empty() &&
      domains_[0]->events.empty()) {
    const Windows each(shortest_delay(topology_));
    const auto [first, last] = std::ranges::minmax(starts_, {}, &Start::at);
    if (each.window_of(first.at, 0) != each.window_of(last.at, 0))
      for (const auto& domain : domains_) domain->events = EventQueue(each, node_of_port_);
  }
  while (!changes_.empty() && changes_.back().at <= end) {
    const Change change = changes_.back();
    changes_.pop_back();
    (void)advance(change.at - ps(1));
    apply(change);
  }
  const bool goes_on = advance(end);
  for (const auto& domain : domains_) domain->now = now_;
  // Timers may be the only events.
  const Time quiet = std::max(next_deadlock_check_, now_ + deadlock_check_);
  if (!goes_on && changes_.empty())
    look_for_deadlock(now_ + deadlock_check_);  // nothing is left that could free what waits now
  else if (!goes_on)
    look_for_deadlock(now_);
  else if (end >= quiet)
    check_for_deadlock(quiet);
  return goes_on || !changes_.empty();
}

// All events up to `end`, that included.
bool Network::advance(Time end) {
  end_ = end;
  const EventQueue& any = domains_[0]->events;
  const Time reached = now_;
  for (u64 from = 0;; from = window_ + 1) {
    window_ = next_window(from);
    if (window_ == EventQueue::kNever || any.start_of(window_) > end) break;
    open_flows(window_, reached);
    for (const auto& domain : domains_) domain->change_boxes();
    simulate_window();
    close_window();
  }
  tell(Time::never());
  return next_window(0) != EventQueue::kNever;
}

// The first from this one on. Frames between domains count with the domain that they go to.
u64 Network::next_window(u64 from) const {
  u64 next = starts_.empty() ? EventQueue::kNever : window_of(starts_.front());
  for (const auto& domain : domains_) {
    next = std::min(next, domain->events.next_window(from));
    for (u32 to = 0; to < domains_.size(); ++to)
      next = std::min(next, domain->filled_for(to).first_window);
  }
  return next;
}

Time Network::next_event() const {
  const u64 window = next_window(0);
  const Time change = changes_.empty() ? Time::never() : changes_.back().at;
  if (window == EventQueue::kNever) return change;
  return std::min(std::max(now_, domains_[0]->events.start_of(window)), change);
}

u64 Network::window_of(const Start& start) const {
  return domains_[0]->events.window_of(start.at, first_port_[flows_[start.flow].source]);
}

// --- between windows

// Gives flows that start in this window QPs at both ends. `reached`: the time that all nodes have
// reached.
void Network::open_flows(u64 window, Time reached) {
  const EventQueue& any = domains_[0]->events;
  const Time now = std::max(any.start_of(window), reached);
  for (const auto& domain : domains_) domain->now = now;
  while (!starts_.empty() && window_of(starts_.front()) <= window) {
    std::ranges::pop_heap(starts_, std::greater{});
    const Start start = starts_.back();
    starts_.pop_back();
    open(start.flow);
    const NodeIndex source = flows_[start.flow].source;
    domain_of(source).events.add(
        {start.at, EventKind::kFlowStart, first_port_[source], start.flow, start.flow});
  }
}

void Network::open(u32 number) {
  const Flow& flow = flows_[number];
  Endpoint& source = *hosts_[flow.source];
  FlowEnds& ends = ends_[number];
  ends = {.sender = source.create_end(source.messages_of(flow.bytes), 1),
          .receiver = hosts_[flow.destination]->create_end(1, 1)};
  join(flow, ends.sender, ends.receiver);
  note_source_port(flow_ports_, number, flow.source, ends.sender);
  ends.is_told_by_receiver =
      hosts_[flow.destination]->expect_flow(ends.receiver, flow.bytes, number);
}

void Network::join(const Flow& ends, EndNumber sender, EndNumber receiver) {
  Endpoint& source = *hosts_[ends.source];
  Endpoint& destination = *hosts_[ends.destination];
  const std::shared_ptr<FPDUPipe> pipe = source.make_pipe();
  source.connect(sender, {.peer = ends.destination,
                          .peer_end = receiver,
                          .peer_key = destination.memory_key(),
                          .source_port = ends.source_port,
                          .destination_port = ends.destination_port,
                          .priority = ends.priority,
                          .pipe = pipe});
  destination.connect(receiver, {.peer = ends.source,
                                 .peer_end = sender,
                                 .peer_key = source.memory_key(),
                                 .source_port = ends.destination_port,
                                 .destination_port = ends.source_port,
                                 .priority = ends.priority,
                                 .pipe = pipe});
}

// Finisher: passes the events of a window to the trace. A flow that has ended loses its QPs: the
// peer has acknowledged everything, so the peer's own QP has nothing left to do.
class Network::Finisher final : public Trace {
 public:
  explicit Finisher(Network& network) : network_(network) {}
  void on_flow_finished(u32 flow, Time now) override {
    network_.finish(flow);
    if (network_.trace_ != nullptr) network_.trace_->on_flow_finished(flow, now);
  }
  void on_flow_failed(u32 flow, Time now) override {
    network_.fail(flow);
    if (network_.trace_ != nullptr) network_.trace_->on_flow_failed(flow, now);
  }
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override {
    if (network_.trace_ != nullptr)
      network_.trace_->on_pause_received(node, port, priority, quanta, now);
  }

 private:
  Network& network_;
};

void Network::close_window() {
  for (const auto& domain : domains_) {
    now_ = std::max(now_, domain->latest);
    if (!domain->told.empty()) told_.append(domain->told);
  }
  do_requests(std::min(domains_[0]->events.end_of(window_), end_));
  if (now_ >= next_deadlock_check_) check_for_deadlock(now_);
  tell(domains_[0]->events.start_of(window_ + 1));
}

// Reports the events before `end`: no further ones can happen before it.
void Network::tell(Time end) {
  if (told_.empty()) return;
  Finisher finisher(*this);
  told_.tell(finisher, end);
}

void Network::finish(u32 number) {
  end(number);
  ++finished_;
}

void Network::fail(u32 number) {
  end(number);
  ++failed_;
}

void Network::end(u32 number) {
  const Flow& flow = flows_[number];
  hosts_[flow.source]->destroy_end(ends_[number].sender);
  hosts_[flow.destination]->destroy_end(ends_[number].receiver);
  ends_[number] = {};
}

void Network::look_for_deadlock(Time now) {
  if (deadlock_ || deadlock_check_ == Duration{}) return;
  deadlock_ = find_deadlock(switches_, ports_, first_port_, now - deadlock_check_, now);
}

void Network::check_for_deadlock(Time now) {
  look_for_deadlock(now);
  next_deadlock_check_ = now + deadlock_check_;
}

// Windows with few events follow each other; several threads gain nothing there.
void Network::simulate_window() {
  if (events_of_last_ >= kEventsOfAMember * domains_.size())
    crew_->run();
  else
    for (const auto& domain : domains_) simulate(*domain);
  const u64 events = counters().events;
  events_of_last_ = events - std::exchange(events_before_, events);
}

// --- within a window, by one thread for each domain

void Network::simulate(Domain& domain) {
  for (const auto& other : domains_) domain.accept(other->to_empty_for(domain.number));
  domain.events.open(window_);
  while (domain.events.next_node()) {
    fetch_ahead(domain);
    simulate_node(domain);
  }
}

// Prefetches the data that the next nodes will touch, one step for each of them.
void Network::fetch_ahead(const Domain& domain) const {
  constexpr u32 kSteps = Device::kFetchSteps + 1;
  for (u32 ahead = 1; ahead <= kSteps; ++ahead) {
    const std::span<const Event> events = domain.events.of_node_ahead(ahead);
    if (events.empty()) return;
    const NodeIndex node = node_of_port_[events[0].place()];
    if (const SwitchNode* const at_switch = switches_[node].get(); at_switch != nullptr) {
      if (ahead == 2) prefetch_bytes(at_switch, sizeof(Switch));
      if (ahead == 1) at_switch->fetch();
      continue;
    }
    const Endpoint* const host = hosts_[node].get();
    if (ahead == kSteps) prefetch_object(*host);
    std::array<u32, 2> fetched_for{~0u, ~0u};  // hosts: data come from one, answers from another
    for (const Event& event : events.first(std::min<std::size_t>(events.size(), kFetched))) {
      if (event.kind() != EventKind::kArrival) continue;
      if (ahead == kSteps) {
        domain.frames.prefetch(event.subject);
        continue;
      }
      const u32 source = domain.frames[event.subject].source;
      if (std::ranges::find(fetched_for, source) != fetched_for.end()) continue;
      fetched_for = {source, fetched_for[0]};
      host->fetch(Device::kFetchSteps - ahead, event.subject);
    }
  }
}

inline void Network::handle(Domain& domain, const Event& event, const Place& place) {
  const u32 port = event.place() - place.first_port;
  SwitchNode* const at_switch = place.at_switch;
  Endpoint* const host = place.host;
  switch (event.kind()) {
    case EventKind::kFlowStart:
      return host->write(ends_[event.subject].sender, flows_[event.subject].bytes, event.subject);
    case EventKind::kArrival:
      if (is_faulty_ && !survives(domain, event)) return;
      if (at_switch != nullptr) return at_switch->on_arrival(port, event.subject);
      host->on_arrival(port, event.subject);
      return collect(domain, *host);
    case EventKind::kPause:
      if (at_switch != nullptr) return at_switch->on_pause_timer(port);
      host->on_own_timer();
      return collect(domain, *host);
    case EventKind::kPortWake:
      return at_switch != nullptr ? at_switch->on_wake(port) : host->on_wake();
    case EventKind::kDeviceTimer: host->on_device_timer(); return collect(domain, *host);
    case EventKind::kAlarm: return application_->on_alarm(event.subject, domain.now);
  }
}

void Network::simulate_node(Domain& domain) {
  for (u32 i = 0; i < kAhead; ++i) prefetch(domain, domain.events.ahead(i));
  const NodeIndex node = domain.events.node();
  const bool are_together = node == EventQueue::kTogether;
  Place place = are_together ? Place{} : place_of(node);
  u64 count = 0;
  for (Event event; domain.events.take(end_, event); ++count) {
    prefetch(domain, domain.events.ahead(kAhead));
    domain.now = event.at;
    domain.known_since = known_since(event);
    if (are_together) place = place_of(node_of_port_[event.place()]);
    handle(domain, event, place);
  }
  domain.counters.events += count;
  domain.latest = std::max(domain.latest, domain.now);
  domain.known_since = ArrivalRank::kLongest;
}

// Flows that start at the same time do so in their order.
Duration Network::known_since(const Event& event) const {
  if (!orders_by_cause_) return ArrivalRank::kLongest;
  if (event.kind() == EventKind::kArrival) [[likely]]
    return ArrivalRank::way_of(event.rank);
  return event.kind() == EventKind::kFlowStart ? ArrivalRank::kLongest - ps(event.subject)
                                               : Duration{};
}

// Returns false if the frame is lost, or arrives later.
bool Network::survives(Domain& domain, const Event& event) {
  const Port& port = ports_[event.place()];
  const Frame& frame = domain.frames[event.subject];
  const bool is_deaf = !deaf_until_.empty() && event.at <= deaf_until_[event.place()];
  if (is_deaf ||
      (port.error_rate > 0 && frame.extent != Extent::kRest && !frame.is_judged &&
       frame.type != FrameType::kFlowControl && errors_[port.node].chance(port.error_rate))) {
    if (!is_deaf && !corrupted_.empty()) ++corrupted_[event.place()];
    lose(event, is_deaf ? domain.counters.lost_on_dead_links : domain.counters.corrupted);
    return false;
  }
  if (filters_.empty() || filters_[event.place()].empty()) return true;
  return passes(domain, event, filters_[event.place()]);
}

bool Network::passes(Domain& domain, const Event& event, std::vector<PacketFilter>& filters) {
  const FrameIndex index = event.subject;
  Frame& judged = domain.frames[index];
  if ((judged.type != FrameType::kRoCE && judged.type != FrameType::kLive) ||
      judged.extent == Extent::kRest || std::exchange(judged.is_judged, false))
    return true;
  const QPN sender = sender_of(domain.frames[index]);
  Duration late{};
  for (PacketFilter& filter : filters) {
    const faults::Verdict verdict =
        filter.judge(domain.frames[index], sender, addresses_, event.at);
    if (verdict.dropped || verdict.corruption) {
      lose(event, domain.counters.corrupted);
      return false;
    }
    if (verdict.marked) mark(domain.frames[index]);
    if (verdict.copy_delay)
      deliver_later(domain, event, domain.frames.copy(index), late + *verdict.copy_delay);
    late = late + verdict.delay;
  }
  if (late == Duration{}) return true;
  deliver_later(domain, event, index, late);
  return false;
}

QPN Network::sender_of(const Frame& frame) const {
  const std::array<u8, Frame::kHeaderBytes>& h = frame.headers;
  return hosts_[frame.destination]->peer_of(QPN{u32{h[5]} << 16 | u32{h[6]} << 8 | h[7]});
}

void Network::lose(const Event& event, u64& counter) {
  const Port& port = ports_[event.place()];
  ++counter;
  if (SwitchNode* const at_switch = switches_[port.node].get(); at_switch != nullptr)
    return at_switch->on_lost(port.number, event.subject);
  hosts_[port.node]->on_lost(port.number, event.subject);
}

void Network::collect(Domain& domain, Endpoint& host) {
  for (const u32 flow : host.finished())
    if (hosts_[flows_[flow].source].get() != &host || !ends_[flow].is_told_by_receiver)
      domain.told.on_flow_finished(flow, domain.now);
  host.finished().clear();
  for (const u32 flow : host.failed()) domain.told.on_flow_failed(flow, domain.now);
  host.failed().clear();
  if (!host.messages().empty()) hand_over(domain, host);
}

// --- for an application

void Network::set_alarm(NodeIndex host, Time at, u32 word) {
  domain_of(host).events.add({at, EventKind::kAlarm, first_port_[host], word, word});
}

void Network::signal(NodeIndex from, NodeIndex to, Time at, u32 word) {
  Domain& domain = domain_of(from);
  const bool comes_at_once = windows_.length() == kNoNotice;  // all nodes are simulated together
  CHECK(comes_at_once || at - domain.now >= windows_.length());
  const Event signal(at, EventKind::kAlarm, first_port_[to], word, word);
  if (domain_of_[to] == domain.number)
    domain.events.add_elsewhere(signal);
  else
    domain.hand_over_signal(domain_of_[to], signal);
}

// Hands messages to the application, which may thereby give this host new messages.
void Network::hand_over(Domain& domain, Endpoint& host) {
  std::vector<Endpoint::Message>& messages = host.messages();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Endpoint::Message message = messages[i];
    if (message.arrived)
      application_->on_arrival(message.connection, message.word, domain.now);
    else
      application_->on_sent(message.connection, domain.now);
  }
  messages.clear();
}

// --- what has happened

Counters Network::counters() const {
  Counters sum;
  for (const auto& domain : domains_) sum += domain->counters;
  return sum;
}

std::optional<Rate> Network::rate_of(u32 flow) const {
  const EndNumber sender = ends_[flow].sender;
  return sender == kNoEnd ? std::nullopt : hosts_[flows_[flow].source]->rate_of(sender, now_);
}

Repairs Network::repairs() const {
  Repairs sum;
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    const Repairs own = host->repairs();
    sum.retransmissions += own.retransmissions;
    sum.timeouts += own.timeouts;
  }
  return sum;
}

u64 Network::frames_in_flight() const {
  u64 frames = 0;
  for (const auto& domain : domains_) {
    frames += domain->frames.in_use();
    for (u32 to = 0; to < domains_.size(); ++to) frames += domain->filled_for(to).frames.size();
  }
  return frames;
}

std::vector<SentFrame> Network::take_tapped() {
  std::vector<SentFrame> all;
  for (const auto& domain : domains_) {
    all.insert(all.end(), domain->tapped.begin(), domain->tapped.end());
    domain->tapped.clear();
  }
  std::ranges::stable_sort(all, [](const SentFrame& a, const SentFrame& b) {
    return std::tie(a.at, a.node, a.port) < std::tie(b.at, b.node, b.port);
  });
  return all;
}

void Network::for_each_longest_queue(const std::function<void(NodeIndex, u32, u32)>& visit) const {
  for (const Port& port : ports_)
    if (switches_[port.node] != nullptr)
      visit(port.node, port.number, switches_[port.node]->longest_queue(port.number));
}

}  // namespace verbena::fabric
