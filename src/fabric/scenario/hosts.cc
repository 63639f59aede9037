#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/scenario/congestion.h"
#include "fabric/scenario/parts.h"
#include "wire/ib/packet.h"

namespace verbena::fabric {
namespace {

constexpr std::array kMTUs = {MTU::k256, MTU::k512, MTU::k1024, MTU::k2048, MTU::k4096};

MTU read_mtu(Section& section) {
  const u64 size = section.bytes("mtu", 4096);
  for (const MTU mtu : kMTUs)
    if (bytes(mtu) == size) return mtu;
  section.complain("mtu",
                   fmt::format("{} is no path MTU; there are 256, 512, 1024, 2048 and 4096", size));
  return MTU::k4096;
}

PCIeConfig read_pcie(Section section) {
  PCIeConfig pcie;
  pcie.posting = section.duration("posting", pcie.posting);
  pcie.completion = section.duration("completion", pcie.completion);
  section.done();
  return pcie;
}

void read_retransmission(Section section, DeviceConfig& device) {
  static constexpr std::string_view kKinds[] = {"go_back_n", "selective_repeat"};
  device.retransmission = static_cast<Retransmission>(
      section.choice("kind", static_cast<std::size_t>(device.retransmission), kKinds));
  device.reordering_packets =
      static_cast<u32>(section.count("reordering", device.reordering_packets, 0, 1u << 20));
  section.done();
}

// Returns whether the key is "off", which is the default of all keys that this is asked for.
bool is_off(Section& section, std::string_view key) {
  return !section.has(key) || section.text(key, "off") == "off";
}

// Selective repeat needs a bound: a responder keeps the packets that arrive early.
u32 read_window(Section& section, Retransmission retransmission) {
  constexpr u32 kOfSelectiveRepeat = 1024, kMostOfSelectiveRepeat = 1u << 16;  // packets
  const bool is_bounded = retransmission == Retransmission::kSelectiveRepeat;
  const u32 fallback = is_bounded ? kOfSelectiveRepeat : PathAllowances::kNoWindow;
  if (!is_bounded && is_off(section, "window")) return fallback;
  return static_cast<u32>(section.count(
      "window", fallback, 1, is_bounded ? kMostOfSelectiveRepeat : PathAllowances::kNoWindow));
}

u32 read_shared_window(Section& section) {
  constexpr u32 kNone = PathAllowances::kNoSharedWindow;
  if (is_off(section, "shared_window")) return kNone;
  return static_cast<u32>(section.count("shared_window", kNone, 1, kNone));
}

std::optional<Duration> read_probe(Section& section) {
  if (is_off(section, "probe")) return std::nullopt;
  const Duration floor = section.duration("probe", us(50));
  if (floor <= Duration()) section.complain("probe", "above 0, or off");
  return floor;
}

void read_requester(Section section, HostConfig& host) {
  DeviceConfig& device = host.device;
  device.path.window_packets = read_window(section, device.retransmission);
  device.path.shared_window_packets = read_shared_window(section);
  device.path.loss_response =
      section.on("halve_at_loss", false) ? LossResponse::kHalveWindow : LossResponse::kNone;
  device.path.min_probe_timeout = read_probe(section);
  device.path.ack_request_period = section.duration("ack_period", device.path.ack_request_period);
  device.ack_interval =
      static_cast<u32>(section.count("ack_interval", device.ack_interval, 1, 1u << 16));
  host.ack_timeout = static_cast<u8>(section.count("ack_timeout", host.ack_timeout, 0, 31));
  host.retry_count = static_cast<u8>(section.count("retries", host.retry_count, 0, 7));
  section.done();
}

// The presets of `encryption`. docs/simulator.md has the sources.
constexpr u16 kPSPOverheadBytes = 8 + 16 + 16;  // UDP header, PSP header, ICV
constexpr EncryptionConfig kByNIC{.overhead_bytes = kPSPOverheadBytes};
constexpr EncryptionConfig kByCPU{
    .overhead_bytes = kPSPOverheadBytes, .packet = ns(450), .rate = Rate::from_bps(45'000'000'000)};

EncryptionConfig read_encryption(Section section) {
  static constexpr std::string_view kPresets[] = {"off", "psp_nic", "psp_cpu"};
  static constexpr EncryptionConfig kConfigs[] = {{}, kByNIC, kByCPU};
  const std::size_t preset = section.choice("preset", 0, kPresets);
  EncryptionConfig encryption = kConfigs[preset];
  if (preset != 0) {
    encryption.overhead_bytes =
        static_cast<u16>(section.count("overhead", encryption.overhead_bytes, 0, 256));
    encryption.packet = section.duration("packet", encryption.packet);
    encryption.rate = section.rate("rate", encryption.rate);
    const u64 cores = section.count("cores", 1, 1, 1024);
    encryption.packet = encryption.packet / static_cast<i64>(cores);
    if (encryption.rate.bps() < Rate::unlimited().bps() / cores)
      encryption.rate = Rate::from_bps(encryption.rate.bps() * cores);
  }
  section.done();
  return encryption;
}

// The section applies to all hosts, or to those that `hosts` names.
void read_function(Section section, const Plan& plan, HostConfig& all, NetworkConfig& config) {
  FunctionConfig function;
  function.rate = section.rate("rate", function.rate);
  function.burst_bytes =
      static_cast<u32>(std::min<u64>(section.bytes("burst", function.burst_bytes, 1), 1u << 30));
  if (!section.has("hosts")) all.function = function;
  for (const std::string& name :
       section.has("hosts") ? section.texts("hosts") : std::vector<std::string>()) {
    if (const std::optional<NodeIndex> host = plan.host_named(name))
      config.functions.push_back({*host, function});
    else
      section.complain("hosts", fmt::format("there is no host '{}'", name));
  }
  section.done();
}

// Functions and encryption of RoCEv2 alone.
void read_virtual_nics(Section& section, const Plan& plan, HostConfig& host,
                       NetworkConfig& config) {
  for (const std::string_view key : {"functions", "encryption"})
    if (section.has(key) && config.technology != Technology::kRoCEv2)
      section.complain(key, "it is of rocev2 alone");
  for (Section& function : section.sections("functions", "rate"))
    read_function(std::move(function), plan, host, config);
  host.encryption = read_encryption(section.section("encryption", "preset"));
  host.sizes.overhead = static_cast<u16>(host.sizes.overhead + host.encryption.overhead_bytes);
}

}  // namespace

void read_hosts(Section section, const Plan& plan, NetworkConfig& config) {
  HostConfig host;
  host.device.active_mtu = read_mtu(section);
  read_virtual_nics(section, plan, host, config);
  // As NICs count: without preamble and gap.
  const u32 overhead =
      config.technology == Technology::kInfiniBand ? kLocalOverheadBytes : host.sizes.overhead;
  host.device.pacing.overhead_bytes = overhead - static_cast<u32>(kICRCSize);
  host.cnp_priority = static_cast<u8>(section.count("cnp_priority", host.cnp_priority, 0, 7));
  read_retransmission(section.section("retransmission", "kind"), host.device);
  read_requester(section.section("requester"), host);
  host.pcie = read_pcie(section.section("pcie"));
  const bool is_infiniband = config.technology == Technology::kInfiniBand;
  const CongestionSettings congestion =
      read_congestion(section.section("congestion_control", "algorithm"),
                      rates_of_hosts(plan.topology), is_infiniband ? "off" : "dcqcn");
  section.done();
  for (const Rate rate : rates_of_hosts(plan.topology))
    if (std::holds_alternative<HPCCParameters>(congestion(rate).algorithm))
      host.collects_telemetry = config.switches.telemetry.enabled = true;
  config.host = [host, congestion](const LinkConfig& link) {
    HostConfig own = host;
    own.device.congestion = congestion(link.rate);
    return own;
  };
}

}  // namespace verbena::fabric
