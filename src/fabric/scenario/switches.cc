#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"
#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

// Thresholds that switches are shipped with, whatever their ports' rate.
//   SONiC     AZURE_LOSSLESS of WRED_PROFILE, as sonic-utilities and sonic-mgmt have it
//   Cumulus   `nv set qos roce`; NVIDIA, Onyx User Manual, RoCE Commands: absolute, 150 .. 1500 KB
enum class ECNProfile : u8 { kProportional, kSONiC, kCumulus };
struct ECNThresholds {
  u64 k_min, k_max;
  double p_max;
};
constexpr ECNThresholds kSONiCThresholds{1'048'576, 2'097'152, 0.05};
constexpr ECNThresholds kCumulusThresholds{150'000, 1'500'000, 1};

// PortSettings: the settings of one port. A value that is nullopt follows from its link.
struct PortSettings {
  u32 alpha = SharedBuffer::kAlphaOne / 8;
  std::optional<u32> headroom;
  bool ecn = true;
  ECNProfile ecn_profile = ECNProfile::kProportional;
  std::optional<u64> k_min, k_max;
  std::optional<double> p_max;
  u32 longest_frame = 0;
  Duration latency{};  // before a frame that has come counts in the buffer
  PFCConfig pfc;
};

// Kmin and Kmax in proportion to the rate: 400 KB and 1600 KB at 100 Gb/s, as Li et al., "HPCC",
// SIGCOMM 2019, 5.1 have them for DCQCN.
ECNThresholds thresholds_of(ECNProfile profile, Rate rate) {
  const MarkingConfig usual;
  const auto scaled = [&](u64 bytes) {
    return std::max<u64>(1, bytes * (rate.bps() / 1'000'000) / 100'000);
  };
  switch (profile) {
    case ECNProfile::kProportional: return {scaled(usual.k_min), scaled(usual.k_max), 0.2};
    case ECNProfile::kSONiC: return kSONiCThresholds;
    case ECNProfile::kCumulus: return kCumulusThresholds;
  }
  CHECK_UNREACHABLE();
}

MarkingConfig marking_of(const PortSettings& settings, Rate rate) {
  const ECNThresholds usual = thresholds_of(settings.ecn_profile, rate);
  MarkingConfig marking{.enabled = settings.ecn, .p_max = settings.p_max.value_or(usual.p_max)};
  marking.k_min = settings.k_min.value_or(usual.k_min);
  marking.k_max = settings.k_max.value_or(std::max(marking.k_min, usual.k_max));
  return marking;
}

// Bytes that are in the switch, but not yet in its buffer, are in flight, too. The frame that
// triggers a pause is in the headroom; the standard's formula takes it to be below it.
u32 headroom_of(const PortSettings& settings, const LinkConfig& link) {
  const Duration one_way = link.delay + ps(settings.latency.ps() / 2);
  return headroom_for(link.rate, one_way, settings.longest_frame, settings.pfc) +
         settings.longest_frame;
}

SwitchPortConfig port_config(const PortSettings& settings, const LinkConfig& link) {
  SwitchPortConfig port;
  port.buffer.alpha = settings.alpha;
  port.buffer.headroom = settings.headroom.value_or(headroom_of(settings, link));
  if (!settings.pfc.enabled) port.buffer.headroom = settings.headroom.value_or(0);
  port.marking = marking_of(settings, link.rate);
  return port;
}

void read_ecn(Section section, PortSettings& port, SwitchConfig& switches) {
  static constexpr std::array<std::string_view, 2> kPlaces = {"enqueue", "dequeue"};
  static constexpr std::array<std::string_view, 3> kProfiles = {"proportional", "sonic", "cumulus"};
  port.ecn = section.on("enabled", true);
  port.ecn_profile = static_cast<ECNProfile>(section.choice("profile", 0, kProfiles));
  if (section.has("kmin")) port.k_min = section.bytes("kmin", 0, 1);
  if (section.has("kmax")) port.k_max = section.bytes("kmax", 0, 1);
  if (section.has("pmax")) port.p_max = section.number("pmax", 0.2, 0, 1);
  switches.mark_at = static_cast<MarkAt>(
      section.choice("at", static_cast<std::size_t>(MarkAt::kDequeue), kPlaces));
  if (port.k_min && port.k_max && *port.k_min > *port.k_max)
    section.complain("kmin", fmt::format("{} is above kmax, {}", *port.k_min, *port.k_max));
  section.done();
}

void read_watchdog(Section section, PFCWatchdogConfig& watchdog) {
  watchdog.enabled = section.on("enabled", watchdog.enabled);
  watchdog.detection = section.duration("detection", watchdog.detection);
  watchdog.restoration = section.duration("restoration", watchdog.restoration);
  section.done();
}

void read_pfc(Section section, PFCConfig& pfc) {
  pfc.enabled = section.on("enabled", pfc.enabled);
  pfc.quanta = static_cast<u16>(section.count("quanta", pfc.quanta, 1, kLongestPause));
  pfc.priorities = read_priorities(section, "priorities", pfc.priorities);
  read_watchdog(section.section("watchdog", "enabled"), pfc.watchdog);
  section.done();
}

void read_ecmp(Section section, SpreadingConfig& spreading) {
  static constexpr std::array<std::string_view, 5> kModes = {"flow", "flow_and_qp", "spray",
                                                             "flowlet", "least_loaded"};
  spreading.kind = static_cast<SpreadingConfig::Kind>(section.choice("mode", 0, kModes));
  spreading.flowlet_gap = section.duration("flowlet_gap", spreading.flowlet_gap);
  section.done();
}

void read_buffer(Section& section, SharedBufferConfig& buffer) {
  buffer.size = section.bytes("buffer", buffer.size, 10'000);
  buffer.reserve =
      static_cast<u32>(std::min<u64>(section.bytes("reserve", buffer.reserve), 1u << 30));
  buffer.resume_offset = static_cast<u32>(
      std::min<u64>(section.bytes("resume_offset", buffer.resume_offset), 1u << 30));
}

// The bytes that ports have of their own must leave some to share. A buffer that the file does not
// name grows to twice their sum: switches with many fast ports have more than 32 MiB.
void check_buffer(Section& section, const Plan& plan, const PortSettings& port,
                  SharedBufferConfig& buffer) {
  std::vector<u64> given(plan.topology.nodes);
  for (const TopologyLink& link : plan.topology.links)
    for (const NodeIndex node : {link.a, link.b})
      given[node] += port_config(port, link.config).buffer.headroom + u64{buffer.reserve};
  const u64 most = *std::ranges::max_element(given);
  if (!section.has("buffer")) buffer.size = std::max(buffer.size, 2 * most);
  for (NodeIndex node = 0; node < plan.topology.nodes; ++node)
    if (plan.topology.is_switch[node] && given[node] + 2 * port.longest_frame > buffer.size)
      return section.complain(
          "buffer",
          fmt::format("headroom and reserve of the ports of {} are {} of {}; raise buffer, "
                      "or lower headroom",
                      plan.names[node], bytes_text(static_cast<double>(given[node])),
                      bytes_text(static_cast<double>(buffer.size))));
}

}  // namespace

u8 read_priorities(Section& section, std::string_view key, u8 fallback) {
  u8 priorities = 0;
  for (const std::string& word : section.texts(key)) {
    if (word.size() == 1 && word[0] >= '0' && word[0] <= '7')
      priorities |= static_cast<u8>(1u << (word[0] - '0'));
    else
      section.complain(key, fmt::format("'{}' is no priority; there are 0 .. 7", word));
  }
  return section.has(key) ? priorities : fallback;
}

void read_forwarding(Section section, ForwardingConfig& forwarding) {
  static constexpr std::array<std::string_view, 2> kModes = {"store_and_forward", "cut_through"};
  forwarding.mode = static_cast<ForwardingConfig::Mode>(
      section.choice("mode", static_cast<std::size_t>(forwarding.mode), kModes));
  forwarding.latency = section.duration("latency", forwarding.latency);
  if (forwarding.latency > ms(4)) section.complain("latency", "4 ms is the longest");
  section.done();
}

void read_switch(Section section, const Plan& plan, u32 longest_frame, NetworkConfig& config) {
  PortSettings port;
  port.longest_frame = longest_frame;
  SwitchConfig& switches = config.switches;
  read_buffer(section, switches.buffer);
  port.alpha =
      static_cast<u32>(section.number("alpha", 0.125, 1.0 / SharedBuffer::kAlphaOne, 1024) *
                       SharedBuffer::kAlphaOne);
  if (section.text("headroom", "auto") != "auto")
    port.headroom = static_cast<u32>(std::min<u64>(section.bytes("headroom", 0), 1u << 30));
  switches.pfc.enabled = !speaks_tcp(config.technology);  // which bears losses
  read_pfc(section.section("pfc", "enabled"), switches.pfc);
  port.pfc = switches.pfc;
  read_ecn(section.section("ecn", "enabled"), port, switches);
  config.faults.convergence = section.duration("convergence", config.faults.convergence);
  read_ecmp(section.section("ecmp", "mode"), switches.spreading);
  switches.forwarding.latency = switch_latency_of(config.technology);
  read_forwarding(section.section("forwarding", "mode"), switches.forwarding);
  port.latency = switches.forwarding.latency;
  switches.discipline.strict = read_priorities(section, "strict", switches.discipline.strict);
  check_buffer(section, plan, port, switches.buffer);
  section.done();
  config.switch_port = [port](const LinkConfig& link) { return port_config(port, link); };
}

}  // namespace verbena::fabric
