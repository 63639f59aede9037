#include "fabric/hpcc_ns3/scenario.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr u16 kDataOverhead = 48, kAcknowledgementOctets = 60, kPauseOctets = 43;
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

HostConfig host(const Config& config, const LinkConfig& link) {
  HostConfig host;
  DeviceConfig& device = host.device;
  device.active_mtu = MTU::k4096;
  device.packet_octets = config.packet_payload;
  device.ack_interval = 1;
  device.window_packets = PSN::kHalf - 1;  // none
  device.window_bytes = ~u32{0};
  device.min_probe_timeout = std::nullopt;
  device.congestion.algorithm = dcqcn(config, link.rate);
  device.congestion.notification.cnp_interval = Duration();
  device.pacing = {.counted = PacingConfig::Counted::kPayload,
                   .overhead_octets = kDataOverhead,
                   .granularity = ns(1),
                   .unpaced_from = link.rate};
  host.pause_expiry = PauseExpiry::kNever;
  host.sizes = {.overhead = kDataOverhead,
                .counts_headers = false,
                .acknowledgement = kAcknowledgementOctets};
  host.notification = Notification::kInAcknowledgement;
  host.acknowledgements_obey_pause = !config.acknowledgements_first;
  return host;
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
  if (config.has_window) return "HAS_WIN 1 is not supported";
  if (config.buffer_mib == 0) return "BUFFER_SIZE is missing";
  if (!config.ecn) return {};
  for (const TopologyLink& link : scenario.topology.links) {
    const u64 rate = link.config.rate.bps();
    const bool between_hosts =
        !scenario.topology.is_switch[link.a] && !scenario.topology.is_switch[link.b];
    if (!between_hosts && (!config.k_min.contains(rate) || !config.k_max.contains(rate) ||
                           !config.p_max.contains(rate)))
      return fmt::format("KMIN_MAP, KMAX_MAP and PMAX_MAP have nothing for a link of {} bit/s",
                         rate);
    if (!dcqcn(config, link.config.rate).valid()) return "the settings of DCQCN are out of range";
  }
  return {};
}

NetworkConfig network_config(const Scenario& scenario, u64 seed) {
  const Config& config = scenario.config;
  const Rate nic = nic_rate(scenario.topology);
  NetworkConfig network;
  network.host = [config](const LinkConfig& link) { return host(config, link); };
  network.switch_port = [config, nic](const LinkConfig& link) {
    return switch_port(config, nic, link);
  };
  network.switches.buffer.size = u64{config.buffer_mib} << 20;
  network.switches.pfc = {.expiry = PauseExpiry::kNever, .frame_octets = kPauseOctets};
  network.switches.mark_at = MarkAt::kDequeue;
  network.clock = Clock::kNanoseconds;
  network.link_error_rate = config.error_rate;
  network.seed = seed;
  return network;
}

}  // namespace verbena::fabric::hpcc_ns3
