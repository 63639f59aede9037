#include "fabric/hpcc_ns3/scenario.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "fabric/hpcc_ns3/paths.h"

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr u16 kDataOverhead = 48, kAcknowledgementOctets = 60, kPauseOctets = 43;
// What data carries beside, by the control: five hops and their number, a time.
constexpr u16 kTelemetryOctets = 5 * 8 + 2, kTimestampOctets = 8;
constexpr u16 kAcknowledgementWithTelemetry = 46 + kTelemetryOctets;
constexpr Time kFirstFailure = Time::from_ns(2'000'000'000);  // which LINK_DOWN counts from
constexpr u32 kMostInFlight = 16'384;                         // packets
constexpr u32 kSentUnit = 128, kQueuedUnit = 80;              // of telemetry
constexpr u16 kFirstSourcePort = 10000;
constexpr u32 kMaxLinks = 1u << 22;
constexpr u32 kMarkingUnit = 1000;  // octets

Duration microseconds(double value) { return ps(std::llround(value * 1e6)); }

bool read_link(Words& words, const Topology& topology, TopologyLink& link) {
  const std::optional<u32> a = words.next_number<u32>(), b = words.next_number<u32>();
  if (!a || !b || *a >= topology.nodes || *b >= topology.nodes) return false;
  const std::optional<std::string_view> rate_word = words.next(), delay_word = words.next();
  if (!rate_word || !delay_word) return false;
  const std::optional<Rate> rate = parse_rate(*rate_word);
  const std::optional<Duration> delay = parse_delay(*delay_word);
  const std::optional<double> error_rate = words.next_number<double>();
  if (!rate || !delay || !error_rate || !(*error_rate >= 0 && *error_rate <= 1)) return false;
  link = {*a, *b, {.rate = *rate, .delay = *delay, .error_rate = *error_rate}};
  return true;
}

// The rate of the NICs, which a switch's ports are measured by: that of the first host.
Rate nic_rate(const Topology& topology) {
  for (NodeIndex node = 0; node < topology.nodes; ++node) {
    if (topology.is_switch[node]) continue;
    for (const TopologyLink& link : topology.links)
      if (link.a == node || link.b == node) return link.config.rate;
  }
  return gbps(100);
}

// 1/8; twice that for each time that the port is faster than a NIC, up to 1.
u32 alpha_of(Rate port, Rate nic) {
  u32 alpha = SharedBuffer::kAlphaOne / 8;
  for (u64 rate = port.bps(); rate > nic.bps() && alpha < SharedBuffer::kAlphaOne; rate /= 2)
    alpha *= 2;
  return alpha;
}

u32 headroom_of(const LinkConfig& link) {
  return static_cast<u32>(link.rate.bps() * static_cast<u64>(link.delay.ns()) / 8 / 1'000'000'000 *
                          3);
}

SwitchPortConfig switch_port(const Config& config, Rate nic, const LinkConfig& link) {
  SwitchPortConfig port;
  port.buffer = {.headroom = headroom_of(link), .alpha = alpha_of(link.rate, nic)};
  port.marking.enabled = config.ecn;
  if (!config.ecn) return port;
  const u64 rate = link.rate.bps();
  port.marking.k_min = u64{config.k_min.at(rate)} * kMarkingUnit;
  port.marking.k_max = u64{config.k_max.at(rate)} * kMarkingUnit;
  port.marking.p_max = config.p_max.at(rate);
  return port;
}

DCQCNParameters dcqcn(const Config& config, Rate line_rate) {
  DCQCNParameters p;
  p.line_rate = line_rate;
  p.min_rate = config.min_rate;
  p.decrease = DCQCNParameters::Decrease::kPeriodic;
  p.clamp = config.clamp_target ? DCQCNParameters::Clamp::kAlways
                                : DCQCNParameters::Clamp::kAfterIncrease;
  p.decrease_interval = microseconds(config.decrease_interval_us);
  p.decrease_offset = ns(1);
  p.g = config.gain;
  p.alpha_interval = microseconds(config.alpha_interval_us);
  p.increase_interval = microseconds(config.increase_interval_us);
  p.byte_counter = 0;
  p.fast_recovery = config.fast_recovery;
  p.additive_increase = config.additive_increase;
  p.hyper_increase = config.hyper_increase;
  return p;
}

// Of the longest way: T and the window.
struct Reference {
  Duration round_trip;
  u64 window = 0;  // octets
};

HPCCParameters hpcc(const Config& config, const Reference& reference, Rate line_rate) {
  using P = HPCCParameters;
  P p;
  p.reaction = config.reacts_to_each_ack ? P::Reaction::kEachAck : P::Reaction::kEachRoundTrip;
  p.loop = config.rate_for_each_hop ? P::Loop::kEachHop : P::Loop::kOne;
  p.bound = P::Bound::kRate;
  p.line_rate = line_rate;
  p.min_rate = config.min_rate;
  p.base_rtt = reference.round_trip;
  p.eta = config.target_utilization;
  p.max_stage = config.max_stage;
  p.additive_octets =
      static_cast<double>(config.additive_increase.bps()) / 8 * reference.round_trip.seconds();
  return p;
}

TIMELYParameters timely(const Config& config, Rate line_rate) {
  return {.variant = TIMELYParameters::Variant::kHPCCModel,
          .line_rate = line_rate,
          .min_rate = config.min_rate,
          .delta = config.additive_increase,
          .hyper_delta = config.hyper_increase};
}

DCTCPParameters dctcp(const Config& config, Rate line_rate) {
  return {.line_rate = line_rate,
          .min_rate = config.min_rate,
          .g = config.gain,
          .additive_increase = config.dctcp_increase,
          .packet_octets = config.packet_payload};
}

WindowParameters window(const Config& config, const Reference& reference, Rate line_rate) {
  if (!config.has_window) return {};
  return {.kind = config.variable_window ? WindowParameters::Kind::kByRate
                                         : WindowParameters::Kind::kFixed,
          .octets = reference.window,
          .line_rate = line_rate};
}

CongestionParameters congestion(const Config& config, const Reference& reference, Rate line_rate) {
  CongestionParameters p;
  switch (config.control) {
    case Control::kNone: p.algorithm = ConstantRateParameters{.line_rate = line_rate}; break;
    case Control::kDCQCN: p.algorithm = dcqcn(config, line_rate); break;
    case Control::kHPCC: p.algorithm = hpcc(config, reference, line_rate); break;
    case Control::kTIMELY: p.algorithm = timely(config, line_rate); break;
    case Control::kDCTCP: p.algorithm = dctcp(config, line_rate); break;
  }
  p.window = window(config, reference, line_rate);
  p.notification.cnp_interval = Duration();
  return p;
}

// Packets. A control that is told of acknowledgements keeps a time for each, so that there must be
// some bound.
u32 most_in_flight(const Config& config, const CongestionParameters& congestion) {
  if (congestion.window.kind != WindowParameters::Kind::kNone)
    return static_cast<u32>(congestion.window.octets / config.packet_payload + 1);
  return CongestionControl(congestion).wants_acks() ? kMostInFlight : PSN::kHalf - 1;
}

FrameSizes frame_sizes(Control control) {
  FrameSizes sizes = {.overhead = kDataOverhead,
                      .counts_headers = false,
                      .acknowledgement = kAcknowledgementOctets};
  if (control == Control::kTIMELY) sizes.overhead += kTimestampOctets;
  if (control == Control::kHPCC) {
    sizes.overhead += kTelemetryOctets;
    sizes.acknowledgement = kAcknowledgementWithTelemetry;
  }
  return sizes;
}

HostConfig host(const Config& config, const Reference& reference, const LinkConfig& link) {
  HostConfig host;
  host.sizes = frame_sizes(config.control);
  DeviceConfig& device = host.device;
  device.active_mtu = MTU::k4096;
  device.packet_octets = config.packet_payload;
  device.ack_interval = 1;
  device.congestion = congestion(config, reference, link.rate);
  device.window_packets = most_in_flight(config, device.congestion);
  device.window_bytes = ~u32{0};
  device.min_probe_timeout = std::nullopt;
  device.pacing = {.counted = PacingConfig::Counted::kPayload,
                   .overhead_octets = host.sizes.overhead,
                   .granularity = ns(1),
                   .unpaced_from = config.paced ? link.rate : Rate::from_bps(1)};
  host.pause_expiry = PauseExpiry::kNever;
  host.notification = Notification::kInAcknowledgement;
  host.acknowledgements_obey_pause = !config.acknowledgements_first;
  host.collects_telemetry = config.control == Control::kHPCC;
  return host;
}

// The last of several between the two nodes, as that model has one.
std::optional<u32> link_that_fails(const Scenario& scenario) {
  const LinkDown& down = *scenario.config.link_down;
  const std::vector<TopologyLink>& links = scenario.topology.links;
  for (std::size_t i = links.size(); i-- != 0;)
    if ((links[i].a == down.a && links[i].b == down.b) ||
        (links[i].a == down.b && links[i].b == down.a))
      return static_cast<u32>(i);
  return std::nullopt;
}

NetworkFaults faults_of(const Scenario& scenario) {
  if (!scenario.config.link_down) return {};
  return {.outages = {{.link = *link_that_fails(scenario),
                       .down = kFirstFailure + scenario.config.link_down->after}},
          .convergence = Duration{}};
}

// Whether T and the window are used.
bool needs_reference(const Config& config) {
  return config.has_window || config.control == Control::kHPCC;
}

Paths::Extent extent_of(const Scenario& scenario) {
  const Routes routes(scenario.topology);
  return Paths(scenario.topology, routes, scenario.config.packet_payload).extent();
}

Reference reference_of(const Scenario& scenario) {
  if (!needs_reference(scenario.config)) return {.round_trip = us(1)};
  const Paths::Extent extent = extent_of(scenario);
  return {.round_trip = ns(static_cast<i64>(std::max<u64>(extent.longest_ns, 1))),
          .window = std::max<u64>(extent.most_octets, 1)};
}

// Of the links that hosts hang on.
std::string check_control(const Scenario& scenario) {
  const Config& config = scenario.config;
  if (needs_reference(config) && !config.global_window) {
    const Paths::Extent extent = extent_of(scenario);
    if (extent.longest_ns != extent.shortest_ns || extent.most_octets != extent.least_octets)
      return "GLOBAL_T 0 is supported only where all pairs of hosts are equally far apart";
  }
  const Reference reference = reference_of(scenario);
  for (const TopologyLink& link : scenario.topology.links) {
    if (scenario.topology.is_switch[link.a] && scenario.topology.is_switch[link.b]) continue;
    if (!congestion(config, reference, link.config.rate).valid())
      return "the settings of the congestion control are out of range";
  }
  return {};
}

}  // namespace

Parsed<Topology> parse_topology(std::string_view name, std::string_view text) {
  Words words(name, text);
  const std::optional<u32> nodes = words.next_number<u32>(), switches = words.next_number<u32>(),
                           links = words.next_number<u32>();
  if (!nodes || !switches || !links || *nodes > kMaxNodes || *switches > *nodes ||
      *links > kMaxLinks)
    return words.error("expected the numbers of nodes, switches and links");
  Topology topology;
  topology.nodes = *nodes;
  topology.is_switch.resize(*nodes);
  for (u32 i = 0; i < *switches; ++i) {
    const std::optional<u32> node = words.next_number<u32>();
    if (!node || *node >= *nodes) return words.error("expected the number of a switch");
    topology.is_switch[*node] = true;
  }
  for (u32 i = 0; i < *links; ++i) {
    TopologyLink link;
    if (!read_link(words, topology, link))
      return words.error("expected a link: two nodes, rate, delay and error rate");
    topology.links.push_back(link);
  }
  if (const std::string wrong = fabric::check(topology); !wrong.empty()) return words.error(wrong);
  return topology;
}

Parsed<std::vector<Flow>> parse_flows(std::string_view name, std::string_view text,
                                      const Topology& topology) {
  Words words(name, text);
  const std::optional<u32> count = words.next_number<u32>();
  if (!count) return words.error("expected the number of flows");
  std::map<std::pair<u32, u32>, u16> next_port;
  std::vector<Flow> flows;
  for (u32 i = 0; i < *count; ++i) {
    const std::optional<u32> source = words.next_number<u32>(),
                             destination = words.next_number<u32>(),
                             priority = words.next_number<u32>();
    const std::optional<u16> port = words.next_number<u16>();
    const std::optional<u64> octets = words.next_number<u64>();
    const std::optional<double> start = words.next_number<double>();
    if (!source || !destination || !priority || !port || !octets || !start)
      return words.error("expected a flow: source, destination, priority, port, octets and start");
    const auto is_host = [&](u32 node) {
      return node < topology.nodes && !topology.is_switch[node];
    };
    if (!is_host(*source) || !is_host(*destination) || *source == *destination)
      return words.error("a flow goes from a host to another one");
    if (*priority >= kPriorities || !(*start >= 0 && *start < 1e6))
      return words.error("a priority is 0 .. 7, and a start a time");
    const auto [at, is_new] = next_port.try_emplace({*source, *destination}, kFirstSourcePort);
    flows.push_back({.source = *source,
                     .destination = *destination,
                     .octets = *octets,
                     .start = Time() + ns3_duration(*start),
                     .priority = static_cast<u8>(*priority),
                     .source_port = at->second++,
                     .destination_port = *port});
  }
  return flows;
}

std::string check(const Scenario& scenario) {
  const Config& config = scenario.config;
  if (config.buffer_mib == 0) return "BUFFER_SIZE is 0";
  if (config.link_down && !link_that_fails(scenario))
    return "LINK_DOWN names two nodes that no link joins";
  if (const std::string wrong = check_control(scenario); !wrong.empty()) return wrong;
  if (!config.ecn) return {};
  for (const TopologyLink& link : scenario.topology.links) {
    const u64 rate = link.config.rate.bps();
    const bool between_hosts =
        !scenario.topology.is_switch[link.a] && !scenario.topology.is_switch[link.b];
    if (!between_hosts && (!config.k_min.contains(rate) || !config.k_max.contains(rate) ||
                           !config.p_max.contains(rate)))
      return fmt::format("KMIN_MAP, KMAX_MAP and PMAX_MAP have nothing for a link of {} bit/s",
                         rate);
  }
  return {};
}

NetworkConfig network_config(const Scenario& scenario, u64 seed) {
  const Config& config = scenario.config;
  const Rate nic = nic_rate(scenario.topology);
  NetworkConfig network;
  network.host = [config, reference = reference_of(scenario)](const LinkConfig& link) {
    return host(config, reference, link);
  };
  network.switch_port = [config, nic](const LinkConfig& link) {
    return switch_port(config, nic, link);
  };
  network.switches.buffer.size = u64{config.buffer_mib} << 20;
  network.switches.pfc = {.expiry = PauseExpiry::kNever, .frame_octets = kPauseOctets};
  network.switches.mark_at = MarkAt::kDequeue;
  network.switches.telemetry = {.enabled = config.control == Control::kHPCC,
                                .sent_unit = kSentUnit * config.telemetry_unit,
                                .queued_unit = kQueuedUnit * config.telemetry_unit};
  network.faults = faults_of(scenario);
  network.clock = Clock::kNanoseconds;
  network.link_error_rate = config.error_rate;
  network.seed = seed;
  return network;
}

}  // namespace verbena::fabric::hpcc_ns3
