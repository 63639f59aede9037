#include <algorithm>

#include <fmt/format.h>

#include "fabric/packet_faults.h"
#include "fabric/scenario/parts.h"
#include "faults/spec.h"

namespace verbena::fabric {
namespace {

struct Span {
  Time from, until;
};
Span read_span(Section& section) {
  const Time from = Time() + section.duration("at", {});
  const Duration lasts = section.duration("for", {});
  if (section.has("for") && lasts == Duration{})
    section.complain("for", "it would be over at once; without it, it stays so");
  return {from, lasts > Duration() ? from + lasts : Time::never()};
}

void complain_of_link(Section& section, std::string_view key, const std::string& name,
                      const Plan& plan) {
  section.complain(
      key, fmt::format("there is no link '{}'; links are named as {}", name, plan.link_name(0)));
}

void read_outage(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("down", "");
  const Span span = read_span(section);
  const std::optional<u32> link = plan.link_named(name);
  if (link) return faults.outages.push_back({*link, span.from, span.until});
  complain_of_link(section, "down", name, plan);
}

u32 links_of(const Topology& topology, NodeIndex node) {
  return static_cast<u32>(std::ranges::count_if(topology.links, [node](const TopologyLink& link) {
    return link.a == node || link.b == node;
  }));
}

// A NIC that is broken pauses at all its ports.
void read_stuck_pause(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("stuck_pause", "");
  const Span span = read_span(section);
  const u64 priority = section.count("priority", Flow{}.priority, 0, 7);
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (!host) return section.complain("stuck_pause", fmt::format("there is no host '{}'", name));
  const u32 ports = links_of(plan.topology, *host);
  for (u32 port = 0; port < ports; ++port)
    faults.stuck_pauses.push_back({.node = *host,
                                   .port = port,
                                   .priorities = static_cast<u8>(1u << priority),
                                   .from = span.from,
                                   .until = span.until});
}

using RuleList = std::vector<faults::Rule>;

// Reads several rules, from a list or from one text with semicolons.
RuleList read_rules(Section& section) {
  RuleList rules;
  for (const std::string& text : section.texts("rules")) {
    tl::expected<RuleList, std::string> parsed = faults::parse_rules(text);
    if (parsed)
      rules.insert(rules.end(), parsed->begin(), parsed->end());
    else
      section.complain("rules", parsed.error());
  }
  if (rules.empty())
    section.complain("rules", "what happens to packets? rules: loss 1% (docs/faults.md)");
  if (const std::string refusal = refusal_of(rules); !refusal.empty())
    section.complain("rules", refusal);
  return rules;
}

// Reads the rules of a host: `tx` is the traffic that the host sends, over any of its links.
void read_rules_of_host(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("at_host", "");
  const RuleList rules = read_rules(section);
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (!host) return section.complain("at_host", fmt::format("there is no host '{}'", name));
  for (u32 i = 0; i < plan.topology.links.size(); ++i)
    if (const TopologyLink& link = plan.topology.links[i]; link.a == *host || link.b == *host)
      faults.rules.push_back({.link = i, .node = *host, .rules = rules});
}

// Reads the rules of a link: `tx` is the traffic of the node that is named first.
void read_rules_of_link(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("at_link", "");
  const RuleList rules = read_rules(section);
  const std::optional<u32> link = plan.link_named(name);
  if (!link) return complain_of_link(section, "at_link", name, plan);
  const TopologyLink& ends = plan.topology.links[*link];
  const bool turned = name == fmt::format("{}-{}", plan.names[ends.b], plan.names[ends.a]);
  faults.rules.push_back({.link = *link, .node = turned ? ends.b : ends.a, .rules = rules});
}

void read_slow_receiver(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("slow_receiver", "");
  ReceiverConfig receiver;
  receiver.drain = section.rate("drain", gbps(10));
  const auto bytes = [&section](std::string_view key, u64 usual) {
    return static_cast<u32>(std::min<u64>(section.bytes(key, usual), 1u << 30));
  };
  receiver.buffer_bytes = bytes("buffer", receiver.buffer_bytes);
  receiver.pause_above = bytes("pause_above", receiver.buffer_bytes / 2);
  receiver.resume_below = bytes("resume_below", receiver.pause_above / 2);
  if (receiver.pause_above > receiver.buffer_bytes)
    section.complain("pause_above", "it is above buffer");
  if (receiver.resume_below > receiver.pause_above)
    section.complain("resume_below", "it is above pause_above");
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (host) return faults.slow_receivers.push_back({*host, receiver});
  section.complain("slow_receiver", fmt::format("there is no host '{}'", name));
}

void read_fault(Section section, const Plan& plan, NetworkFaults& faults) {
  if (section.has("stuck_pause"))
    read_stuck_pause(section, plan, faults);
  else if (section.has("down"))
    read_outage(section, plan, faults);
  else if (section.has("slow_receiver"))
    read_slow_receiver(section, plan, faults);
  else if (section.has("at_host"))
    read_rules_of_host(section, plan, faults);
  else if (section.has("at_link"))
    read_rules_of_link(section, plan, faults);
  else
    section.complain({},
                     "what is broken? down: h0-s0, stuck_pause: h0, slow_receiver: h0, or "
                     "{at_host: h0, rules: loss 1%}");
  section.done();
}

}  // namespace

void read_faults(Section& root, const Plan& plan, NetworkConfig& config) {
  for (const Section& fault : root.sections("faults", "down"))
    read_fault(fault, plan, config.faults);
  if (config.technology == Technology::kInfiniBand && !config.faults.stuck_pauses.empty())
    root.complain("faults", "stuck_pause is of Ethernet: InfiniBand has no pauses");
}

}  // namespace verbena::fabric
