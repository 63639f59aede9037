#include <fmt/format.h>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

struct Span {
  Time from, until;
};
Span read_span(Section& section) {
  const Time from = Time() + section.duration("at", {});
  const Duration lasts = section.duration("for", {});
  return {from, lasts > Duration() ? from + lasts : Time::never()};
}

void read_outage(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("down", "");
  const Span span = read_span(section);
  const std::optional<u32> link = plan.link_named(name);
  if (link) return faults.outages.push_back({*link, span.from, span.until});
  section.complain(
      "down", fmt::format("there is no link '{}'; links are named as {}", name, plan.link_name(0)));
}

void read_stuck_pause(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("stuck_pause", "");
  const Span span = read_span(section);
  const u64 priority = section.count("priority", Flow{}.priority, 0, 7);
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (host)
    return faults.stuck_pauses.push_back({.node = *host,
                                          .priorities = static_cast<u8>(1u << priority),
                                          .from = span.from,
                                          .until = span.until});
  section.complain("stuck_pause", fmt::format("there is no host '{}'", name));
}

void read_slow_receiver(Section& section, const Plan& plan, NetworkFaults& faults) {
  const std::string name = section.text("slow_receiver", "");
  ReceiverConfig receiver;
  receiver.drain = section.rate("drain", gbps(10));
  const auto octets = [&section](std::string_view key, u64 usual) {
    return static_cast<u32>(std::min<u64>(section.octets(key, usual), 1u << 30));
  };
  receiver.buffer_octets = octets("buffer", receiver.buffer_octets);
  receiver.pause_above = octets("pause_above", receiver.buffer_octets / 2);
  receiver.resume_below = octets("resume_below", receiver.pause_above / 2);
  if (receiver.pause_above > receiver.buffer_octets)
    section.complain("pause_above", "it is above buffer");
  if (receiver.resume_below > receiver.pause_above)
    section.complain("resume_below", "it is above pause_above");
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (host) return faults.slow_receivers.push_back({*host, receiver});
  section.complain("slow_receiver", fmt::format("there is no host '{}'", name));
}

}  // namespace

void read_fault(Section section, const Plan& plan, NetworkFaults& faults) {
  if (section.has("stuck_pause"))
    read_stuck_pause(section, plan, faults);
  else if (section.has("down"))
    read_outage(section, plan, faults);
  else if (section.has("slow_receiver"))
    read_slow_receiver(section, plan, faults);
  else
    section.complain({}, "what is broken? down: h0-s0, stuck_pause: h0 or slow_receiver: h0");
  section.done();
}

}  // namespace verbena::fabric
