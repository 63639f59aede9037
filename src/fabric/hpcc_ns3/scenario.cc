#include "fabric/hpcc_ns3/scenario.h"

#include <map>

#include <fmt/format.h>

#include "fabric/hpcc_ns3/conventions.h"

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr Time kFirstFailure = Time::from_ns(2'000'000'000);  // which LINK_DOWN counts from
constexpr u16 kFirstSourcePort = 10000;
constexpr u32 kMaxLinks = 1u << 22;

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

// Checks the congestion control for the links of hosts.
std::string check_control(const Scenario& scenario) {
  const Config& config = scenario.config;
  if (needs_reference(config) && !config.global_window) {
    const Paths::Extent extent = extent_of(config, scenario.topology);
    if (extent.longest_ns != extent.shortest_ns || extent.most_bytes != extent.least_bytes)
      return "GLOBAL_T 0 is supported only where all pairs of hosts are equally far apart";
  }
  const Conventions conventions(config, scenario.topology);
  for (const TopologyLink& link : scenario.topology.links) {
    if (scenario.topology.is_switch[link.a] && scenario.topology.is_switch[link.b]) continue;
    if (!conventions.congestion(link.config.rate).valid())
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
    const std::optional<u64> bytes = words.next_number<u64>();
    const std::optional<double> start = words.next_number<double>();
    if (!source || !destination || !priority || !port || !bytes || !start)
      return words.error("expected a flow: source, destination, priority, port, bytes and start");
    const auto is_host = [&](u32 node) {
      return node < topology.nodes && !topology.is_switch[node];
    };
    if (!is_host(*source) || !is_host(*destination) || *source == *destination)
      return words.error("a flow goes from a host to another one");
    if (*priority >= kPriorities || !(*start >= 0 && *start < 1e6))
      return words.error("a priority is 0 .. 7, and a start a time");
    const auto [at, is_new] = next_port.try_emplace({*source, *destination}, kFirstSourcePort);
    if (*bytes == 0) {
      ++at->second;
      continue;
    }
    flows.push_back({.source = *source,
                     .destination = *destination,
                     .bytes = *bytes,
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
  const Conventions conventions(config, scenario.topology);
  NetworkConfig network;
  conventions.follow(network);
  network.host = [conventions](const LinkConfig& link) {
    HostConfig host;
    conventions.follow(host, link, conventions.congestion(link.rate));
    return host;
  };
  network.switch_port = [conventions](const LinkConfig& link) {
    return conventions.switch_port(link);
  };
  network.switches.buffer.size = u64{config.buffer_mib} << 20;
  network.faults = faults_of(scenario);
  network.link_error_rate = config.error_rate;
  network.seed = seed;
  return network;
}

}  // namespace verbena::fabric::hpcc_ns3
