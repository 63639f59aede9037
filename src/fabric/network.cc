#include "fabric/network.h"

#include <algorithm>

namespace verbena::fabric {
namespace {

constexpr Duration kShortestDay = ps(1024);
constexpr i64 kDaysOfALink = 4096;  // half of what the calendar shows

// So that frames arrive within what the calendar shows, on all but unusually long links.
Duration day_for(const Topology& topology) {
  std::vector<i64> delays;
  for (const TopologyLink& link : topology.links)
    delays.push_back((link.config.delay + link.config.rate.time_of(1500)).ps());
  if (delays.empty()) return kShortestDay;
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
  std::ranges::nth_element(delays, middle);
  return std::max(kShortestDay, ps(*middle / kDaysOfALink));
}

LinkConfig link_of(const Port& port) {
  return {.rate = port.rate, .delay = port.delay, .error_rate = port.error_rate};
}

}  // namespace

Network::Network(const Topology& topology, const NetworkConfig& config)
    : domain_(day_for(topology)), routes_(topology), errors_(config.seed) {
  CHECK(topology.nodes <= kMaxNodes);
  for (NodeIndex node = 0; node < topology.nodes; ++node) addresses_.push_back(address_of(node));
  add_ports(topology, config);
  add_nodes(topology, config);
}

Network::~Network() = default;

const Duration* Network::times_of(Rate rate, Clock clock) {
  for (const auto& [known, times] : times_)
    if (known == rate) return times->data();
  times_.emplace_back(rate, std::make_unique<TransmissionTimes>(rate, clock));
  return times_.back().second->data();
}

void Network::add_ports(const Topology& topology, const NetworkConfig& config) {
  first_port_.assign(topology.nodes + 1, 0);
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) ++first_port_[node + 1];
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    first_port_[node + 1] += first_port_[node];
  ports_.resize(first_port_.back());
  std::vector<u32> used(topology.nodes);
  const auto add = [&](NodeIndex node, const LinkConfig& link) -> u32 {
    const u32 number = used[node]++;
    Port& port = ports_[first_port_[node] + number];
    port.times = times_of(link.rate, config.clock);
    port.delay = link.delay;
    port.node = node;
    port.number = number;
    port.rate = link.rate;
    port.error_rate = 1 - (1 - link.error_rate) * (1 - config.link_error_rate);
    return first_port_[node] + number;
  };
  for (const TopologyLink& link : topology.links) {
    const u32 a = add(link.a, link.config), b = add(link.b, link.config);
    ports_[a].peer = b;
    ports_[b].peer = a;
  }
}

void Network::add_nodes(const Topology& topology, const NetworkConfig& config) {
  PRNG prng(config.seed);
  switches_.resize(topology.nodes);
  hosts_.resize(topology.nodes);
  for (NodeIndex node = 0; node < topology.nodes; ++node) {
    if (topology.is_switch[node])
      add_switch(node, config, prng);
    else if (first_port_[node] != first_port_[node + 1])
      add_host(node, config, prng);
  }
}

void Network::add_switch(NodeIndex node, const NetworkConfig& config, PRNG& prng) {
  const u32 first = first_port_[node];
  const std::span<Port> ports(ports_.data() + first, first_port_[node + 1] - first);
  std::vector<SwitchPortConfig> port_configs;
  for (const Port& port : ports) port_configs.push_back(config.switch_port(link_of(port)));
  SwitchConfig own = config.switches;
  own.hash_seed = node;
  own.seed = prng.next();
  switches_[node] = std::make_unique<Switch>(domain_, own, node, ports, first,
                                             std::move(port_configs), routes_, addresses_);
}

void Network::add_host(NodeIndex node, const NetworkConfig& config, PRNG& prng) {
  const u32 place = first_port_[node];
  HostConfig own = config.host(link_of(ports_[place]));
  own.device.gids = {{.gid = GID::from_ipv4(addresses_[node])}};
  own.device.seed = prng.next();
  hosts_[node] =
      std::make_unique<Host>(domain_, std::move(own), node, ports_[place], place, addresses_);
}

bool Network::add_flow(const Flow& flow) {
  if (routes_.ports(flow.source, flow.destination).empty()) return false;
  const u32 number = static_cast<u32>(flows_.size());
  flows_.push_back(flow);
  ends_.emplace_back();
  domain_.events.add({flow.start, EventKind::kFlowStart, number});
  return true;
}

bool Network::run(Time end) {
  Event event;
  while (domain_.events.take(end, event)) {
    prefetch();
    domain_.now = event.at;
    ++domain_.counters.events;
    handle(event);
  }
  return !domain_.events.empty();
}

// What the events after this one will touch, so that it is in the cache by then.
void Network::prefetch() const {
  domain_.events.look_ahead([this](const Event& event) {
    if (event.kind() == EventKind::kArrival) domain_.frames.prefetch(event.subject);
  });
}

void Network::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::kFlowStart: return start(event.place());
    case EventKind::kArrival: return on_arrival(event);
    case EventKind::kAlarm: return application_->on_alarm(event.place(), domain_.now);
    case EventKind::kPause:
    case EventKind::kPortWake:
    case EventKind::kDeviceTimer: break;
  }
  const Port& port = ports_[event.place()];
  Switch* const at_switch = switches_[port.node].get();
  Host* const host = hosts_[port.node].get();
  if (event.kind() == EventKind::kPortWake)
    return at_switch != nullptr ? at_switch->on_wake(port.number) : host->on_wake();
  if (event.kind() == EventKind::kPause)
    return at_switch != nullptr ? at_switch->on_pause_timer(port.number) : host->on_pause_timer();
  host->on_device_timer();
  settle(*host);
}

void Network::on_arrival(const Event& event) {
  const Port& port = ports_[event.place()];
  if (port.error_rate > 0 && errors_.chance(port.error_rate)) {
    ++domain_.counters.lost;
    return domain_.frames.give_back(event.subject);
  }
  if (Switch* const at_switch = switches_[port.node].get(); at_switch != nullptr)
    return at_switch->on_arrival(port.number, event.subject);
  Host& host = *hosts_[port.node];
  host.on_arrival(event.subject);
  settle(host);
}

void Network::join(const Flow& ends, QueuePair* sender, QueuePair* receiver) {
  Host& source = *hosts_[ends.source];
  Host& destination = *hosts_[ends.destination];
  source.connect(sender, {.peer = ends.destination,
                          .peer_qpn = destination.number_of(receiver),
                          .source_port = ends.source_port,
                          .destination_port = ends.destination_port,
                          .priority = ends.priority});
  destination.connect(receiver, {.peer = ends.source,
                                 .peer_qpn = source.number_of(sender),
                                 .source_port = ends.destination_port,
                                 .destination_port = ends.source_port,
                                 .priority = ends.priority});
}

void Network::start(u32 number) {
  const Flow& flow = flows_[number];
  Host& source = *hosts_[flow.source];
  Host& destination = *hosts_[flow.destination];
  FlowEnds& ends = ends_[number];
  ends = {.sender = source.create_qp(source.messages_of(flow.octets)),
          .receiver = destination.create_qp(1)};
  join(flow, ends.sender, ends.receiver);
  source.write(ends.sender, destination.memory_key(), flow.octets, number);
}

void Network::settle(Host& host) {
  finish(host);
  if (!host.messages().empty()) hand_over(host);
}

// The peer has acknowledged everything, so that its QP has nothing left to do.
void Network::finish(Host& sender) {
  if (sender.finished().empty()) return;
  for (const u32 number : sender.finished()) {
    sender.destroy_qp(ends_[number].sender);
    hosts_[flows_[number].destination]->destroy_qp(ends_[number].receiver);
    ends_[number] = {};
    ++finished_;
    if (domain_.trace != nullptr) domain_.trace->on_flow_finished(number, domain_.now);
  }
  sender.finished().clear();
}

bool Network::connect(const ConnectionConfig& config) {
  if (routes_.ports(config.source, config.destination).empty()) return false;
  Host& destination = *hosts_[config.destination];
  QueuePair* const sender = hosts_[config.source]->create_qp(config.depth);
  QueuePair* const receiver = destination.create_qp(1, config.depth);
  join({.source = config.source,
        .destination = config.destination,
        .priority = config.priority,
        .source_port = config.source_port,
        .destination_port = config.destination_port},
       sender, receiver);
  destination.expect(receiver, config.depth, static_cast<u32>(connections_.size()));
  connections_.push_back(config);
  connection_senders_.push_back(sender);
  return true;
}

void Network::send(u32 connection, u32 octets, u32 word) {
  CHECK(octets <= ConnectionConfig::kMaxMessageOctets);
  const ConnectionConfig& ends = connections_[connection];
  hosts_[ends.source]->send_message(connection_senders_[connection],
                                    hosts_[ends.destination]->memory_key(), octets, connection,
                                    word);
}

void Network::set_alarm(Time at, u32 word) { domain_.events.add({at, EventKind::kAlarm, word}); }

// What the application does of it may give this host messages anew, though not at once.
void Network::hand_over(Host& host) {
  delivered_.swap(host.messages());
  for (const Host::Message& message : delivered_) {
    if (message.arrived)
      application_->on_arrival(message.connection, message.word, domain_.now);
    else
      application_->on_sent(message.connection, domain_.now);
  }
  delivered_.clear();
}

void Network::for_each_longest_queue(const std::function<void(NodeIndex, u32, u32)>& visit) const {
  for (const Port& port : ports_)
    if (switches_[port.node] != nullptr)
      visit(port.node, port.number, switches_[port.node]->longest_queue(port.number));
}

}  // namespace verbena::fabric
