#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

constexpr u32 kBlock = CreditConfig::kBlockBytes;
constexpr u32 kMostBuffer = CreditConfig::kMostBlocks * kBlock;
constexpr u32 kWeightBytes = 64, kMostWeight = 255;  // of VL arbitration. IBTA 7.6.9.2

// Refuses keys of Ethernet switches, each with the key that InfiniBand has in its place.
void refuse_switch(Section section) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kInstead = {{
      {"pfc", "InfiniBand never pauses: credits hold senders back"},
      {"ecn", "InfiniBand marks with FECN: infiniband: {fecn: on}"},
      {"buffer", "InfiniBand has buffers for each port and lane: infiniband: {buffer: 64KiB}"},
      {"reserve", "it is of Ethernet switches"},
      {"alpha", "it is of Ethernet switches"},
      {"headroom", "it is of Ethernet switches"},
      {"resume_offset", "it is of Ethernet switches"},
      {"ecmp", "InfiniBand has forwarding tables: infiniband: {routing: adaptive}"},
      {"forwarding", "here it is infiniband: {forwarding: cut_through}"},
      {"convergence", "here it is infiniband: {convergence: 10ms}"},
      {"strict", "here it is infiniband: {high_priority: [6]}"},
  }};
  for (const auto& [key, what] : kInstead)
    if (section.has(key)) section.complain(key, std::string(what));
  section.done();
}

void read_lanes(Section& section, InfiniBandConfig& config) {
  config.lanes = static_cast<u32>(section.count("vls", kVirtualLanes, 1, kVirtualLanes));
  if (!std::has_single_bit(config.lanes))
    section.complain("vls", "there are 1, 2, 4 or 8 lanes of data (IBTA 7.6.1)");
  for (u32 sl = 0; sl < kPriorities; ++sl) config.sl_to_vl[sl] = static_cast<u8>(sl % config.lanes);
}

// Whole numbers up to `most`, one for each place from the first on.
std::vector<u32> read_numbers(Section& section, std::string_view key, std::size_t places, u32 least,
                              u32 most) {
  std::vector<u32> numbers;
  for (const std::string& word : section.texts(key)) {
    u32 number = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc() || rest != end || number < least || number > most)
      section.complain(key, fmt::format("'{}' is none of {} .. {}", word, least, most));
    numbers.push_back(number);
  }
  if (numbers.size() <= places) return numbers;
  section.complain(key, fmt::format("there are {} places", places));
  return {};
}

void read_arbitration(Section& section, InfiniBandConfig& config) {
  const std::vector<u32> lanes = read_numbers(section, "sl2vl", kPriorities, 0, config.lanes - 1);
  std::ranges::copy(lanes, config.sl_to_vl.begin());
  config.arbitration.strict = read_priorities(section, "high_priority", 0);
  const std::vector<u32> weights = read_numbers(section, "weights", config.lanes, 1, kMostWeight);
  for (std::size_t lane = 0; lane < weights.size(); ++lane)
    config.arbitration.quantum[lane] = weights[lane] * kWeightBytes;
}

u32 read_bytes(Section& section, std::string_view key, u32 least) {
  if (section.text(key, "auto") == "auto") return 0;
  const u64 bytes = section.bytes(key, kMostBuffer, least);
  if (bytes > kMostBuffer)
    section.complain(key, "128 KiB is the most that 12 bits of credits can tell (IBTA 7.9.4)");
  return static_cast<u32>(std::min<u64>(bytes, kMostBuffer));
}

void read_routing(Section& section, const Plan& plan, InfiniBandConfig& config) {
  std::array<std::string_view, kRoutingEngines.size()> names;
  std::ranges::transform(kRoutingEngines, names.begin(),
                         [](RoutingEngine engine) { return name_of(engine); });
  const bool is_tree = !ForwardingTables::obstacle(plan.topology, RoutingEngine::kFatTree);
  config.routing = kRoutingEngines[section.choice("routing", is_tree ? 0 : 1, names)];
  const std::optional<u32> link = ForwardingTables::obstacle(plan.topology, config.routing);
  if (link)
    section.complain("routing", fmt::format("{} joins switches of one rank, so that this is no "
                                            "fat tree; up_down takes it",
                                            plan.link_name(*link)));
}

void read_fecn(Section section, NetworkConfig& config) {
  FECNConfig& fecn = config.infiniband.fecn;
  fecn.enabled = section.on("enabled", fecn.enabled);
  fecn.threshold = static_cast<u8>(section.count("threshold", fecn.threshold, 1, 15));
  fecn.marking_rate = static_cast<u16>(section.count("marking_rate", fecn.marking_rate, 0, 0xffff));
  section.done();
}

// Enables in switches what the control of hosts needs; other controls need features that InfiniBand
// does not have.
void check_congestion(Section& root, const Plan& plan, NetworkConfig& config) {
  for (const TopologyLink& link : plan.topology.links) {
    const CongestionParameters congestion = config.host(link.config).device.congestion;
    if (std::holds_alternative<IBCCParameters>(congestion.algorithm))
      config.infiniband.fecn.enabled = true;
    else if (!std::holds_alternative<UncontrolledParameters>(congestion.algorithm) &&
             !std::holds_alternative<ConstantRateParameters>(congestion.algorithm))
      return root.complain("hosts", "congestion_control: InfiniBand has ib_cc, window and off");
  }
}

}  // namespace

void read_infiniband(Section& root, const Plan& plan, NetworkConfig& config) {
  refuse_switch(root.section("switch"));
  if (plan.topology.nodes > kLIDs)
    root.complain("topology", fmt::format("a subnet has {} LIDs", kLIDs));
  InfiniBandConfig& infiniband = config.infiniband;
  infiniband.mtu_bytes = static_cast<u32>(bytes(config.host({}).device.active_mtu));
  check_congestion(root, plan, config);
  Section section = root.section("infiniband");
  read_lanes(section, infiniband);
  read_arbitration(section, infiniband);
  infiniband.buffer_bytes = read_bytes(section, "buffer", infiniband.longest_packet() + kBlock);
  infiniband.credit_update_bytes = read_bytes(section, "credit_update", 1);
  read_routing(section, plan, infiniband);
  ForwardingConfig forwarding{.mode = ForwardingConfig::Mode::kCutThrough,
                              .latency = infiniband.latency};
  read_forwarding(section.section("forwarding", "mode"), forwarding);
  infiniband.cuts_through = forwarding.mode == ForwardingConfig::Mode::kCutThrough;
  infiniband.latency = forwarding.latency;
  config.faults.convergence = section.duration("convergence", config.faults.convergence);
  read_fecn(section.section("fecn", "enabled"), config);
  section.done();
}

}  // namespace verbena::fabric
