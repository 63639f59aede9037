#include <array>

#include <fmt/format.h>

#include "fabric/scenario/congestion.h"
#include "fabric/scenario/parts.h"
#include "wire/ib/packet.h"

namespace verbena::fabric {
namespace {

constexpr std::array kMTUs = {MTU::k256, MTU::k512, MTU::k1024, MTU::k2048, MTU::k4096};

MTU read_mtu(Section& section) {
  const u64 octets = section.octets("mtu", 4096);
  for (const MTU mtu : kMTUs)
    if (bytes(mtu) == octets) return mtu;
  section.complain(
      "mtu", fmt::format("{} is no path MTU; there are 256, 512, 1024, 2048 and 4096", octets));
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

}  // namespace

void read_hosts(Section section, const Plan& plan, NetworkConfig& config) {
  HostConfig host;
  host.device.active_mtu = read_mtu(section);
  // As NICs count: without preamble and gap.
  const u32 overhead =
      config.technology == Technology::kInfiniBand ? kLocalOverheadOctets : host.sizes.overhead;
  host.device.pacing.overhead_octets = overhead - static_cast<u32>(kICRCSize);
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
