#include "fabric/hpcc_ns3/conventions.h"

#include <algorithm>
#include <cmath>

#include "fabric/hpcc_ns3/paths.h"

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr u16 kDataOverhead = 48, kAcknowledgementBytes = 60, kPauseBytes = 43;
// Bytes that data carries in addition, by the control: five hops and their number, or a time.
constexpr u16 kTelemetryBytes = 5 * 8 + 2, kTimestampBytes = 8;
constexpr u16 kAcknowledgementWithTelemetry = 46 + kTelemetryBytes;
constexpr u32 kMostInFlight = 16'384;             // packets
constexpr u32 kSentUnit = 128, kQueuedUnit = 80;  // of telemetry
constexpr u32 kMarkingUnit = 1000;                // bytes

// Returns whole microseconds, rounded down as in ns-3. Values below one, with which that model
// would stand still, keep their fraction.
Duration microseconds(double value) {
  return value >= 1 ? us(static_cast<i64>(value)) : ps(std::llround(value * 1e6));
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
  p.additive_bytes =
      static_cast<double>(config.additive_increase.bps()) / 8 * reference.round_trip.seconds();
  p.pipe_bytes = config.has_window ? reference.window : 0;
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
          .packet_bytes = config.packet_payload};
}

WindowParameters window(const Config& config, const Reference& reference, Rate line_rate) {
  if (!config.has_window) return {};
  return {.kind = config.variable_window ? WindowParameters::Kind::kByRate
                                         : WindowParameters::Kind::kFixed,
          .bytes = reference.window,
          .line_rate = line_rate};
}

// Returns a number of packets. A control that handles acknowledgements keeps a time for each, so
// there must be some bound.
u32 most_in_flight(const Config& config, const CongestionParameters& congestion) {
  if (congestion.window.kind != WindowParameters::Kind::kNone)
    return static_cast<u32>(congestion.window.bytes / config.packet_payload + 1);
  return CongestionControl(congestion).wants_acks() ? kMostInFlight : PSN::kHalf - 1;
}

FrameSizes frame_sizes(Control control) {
  FrameSizes sizes = {
      .overhead = kDataOverhead, .counts_headers = false, .acknowledgement = kAcknowledgementBytes};
  if (control == Control::kTIMELY) sizes.overhead += kTimestampBytes;
  if (control == Control::kHPCC) {
    sizes.overhead += kTelemetryBytes;
    sizes.acknowledgement = kAcknowledgementWithTelemetry;
  }
  return sizes;
}

Reference reference_of(const Config& config, const Topology& topology) {
  if (!needs_reference(config)) return {.round_trip = us(1)};
  const Paths::Extent extent = extent_of(config, topology);
  return {.round_trip = ns(static_cast<i64>(std::max<u64>(extent.longest_ns, 1))),
          .window = std::max<u64>(extent.most_bytes, 1)};
}

}  // namespace

bool needs_reference(const Config& config) {
  return config.has_window || config.control == Control::kHPCC;
}

Paths::Extent extent_of(const Config& config, const Topology& topology) {
  const Routes routes(topology, {}, ParallelLinks::kLast);
  return Paths(topology, routes, config.packet_payload).extent();
}

Config published_config() {
  Config config;
  config.alpha_interval_us = 1;
  config.increase_interval_us = 300;
  config.gain = 1.0 / 256;
  config.fast_recovery = 1;
  config.additive_increase = mbps(20);
  config.hyper_increase = mbps(200);
  config.min_rate = mbps(1000);
  config.has_window = false;
  config.acknowledgements_first = true;
  return config;
}

Conventions::Conventions(const Config& config, const Topology& topology)
    : config_(config), nic_(nic_rate(topology)), reference_(reference_of(config, topology)) {}

CongestionParameters Conventions::congestion(Rate line_rate) const {
  CongestionParameters p;
  switch (config_.control) {
    case Control::kNone: p.algorithm = ConstantRateParameters{.line_rate = line_rate}; break;
    case Control::kDCQCN: p.algorithm = dcqcn(config_, line_rate); break;
    case Control::kHPCC: p.algorithm = hpcc(config_, reference_, line_rate); break;
    case Control::kTIMELY: p.algorithm = timely(config_, line_rate); break;
    case Control::kDCTCP: p.algorithm = dctcp(config_, line_rate); break;
  }
  p.window = window(config_, reference_, line_rate);
  p.notification.cnp_interval = Duration();
  return p;
}

void Conventions::follow(HostConfig& host, const LinkConfig& link,
                         const CongestionParameters& congestion) const {
  host.sizes = frame_sizes(config_.control);
  DeviceConfig& device = host.device;
  device.active_mtu = MTU::k4096;
  device.packet_bytes = config_.packet_payload;
  device.ack_interval = 1;
  device.congestion = congestion;
  device.path.window_packets = most_in_flight(config_, device.congestion);
  device.pacing = {.counted = PacingConfig::Counted::kPayload,
                   .overhead_bytes = host.sizes.overhead,
                   .clock = TransmissionClock::kNanoseconds,
                   .unpaced_from = config_.paced ? link.rate : Rate::from_bps(1)};
  host.pause_expiry = PauseExpiry::kNever;
  host.notification = Notification::kInAcknowledgement;
  host.acknowledgements_obey_pause = !config_.acknowledgements_first;
  host.collects_telemetry = config_.control == Control::kHPCC;
}

SharedBuffer::PortConfig Conventions::buffer(const LinkConfig& link) const {
  return {.headroom = headroom_of(link), .alpha = alpha_of(link.rate, nic_)};
}

SwitchPortConfig Conventions::switch_port(const LinkConfig& link) const {
  SwitchPortConfig port;
  port.buffer = buffer(link);
  port.marking.enabled = config_.ecn;
  if (!config_.ecn) return port;
  const u64 rate = link.rate.bps();
  port.marking.k_max = u64{config_.k_max.at(rate)} * kMarkingUnit;
  port.marking.k_min = std::min(u64{config_.k_min.at(rate)} * kMarkingUnit, port.marking.k_max);
  port.marking.p_max = config_.p_max.at(rate);
  return port;
}

void Conventions::follow(NetworkConfig& network) const {
  network.switches.pfc.expiry = PauseExpiry::kNever;
  network.switches.pfc.frame_bytes = kPauseBytes;
  network.switches.telemetry = {.enabled = config_.control == Control::kHPCC,
                                .sent_unit = kSentUnit * config_.telemetry_unit,
                                .queued_unit = kQueuedUnit * config_.telemetry_unit};
  network.clock = Clock::kNanoseconds;
  network.gap_bytes = 0;
  network.parallel_links = ParallelLinks::kLast;
}

}  // namespace verbena::fabric::hpcc_ns3
