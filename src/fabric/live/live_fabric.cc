#include "fabric/live/live_fabric.h"

#include <algorithm>

#include <fmt/format.h>

#include "wire/eth/ecn.h"

namespace verbena::fabric {
namespace {

u64 bytes_of(const LivePacket& packet) {
  return packet.bytes.size() - kICRCSize + FrameSizes{}.overhead;
}

void count(LiveFigures::Way& way, const LivePacket& packet, Time at) {
  ++way.packets;
  way.bytes += bytes_of(packet);
  if (packet.kind != LivePacket::Kind::kData) return;
  if (way.first == Time::never()) way.first = at;
  if (at > way.first) way.bytes_after_first += bytes_of(packet);
  way.last = at;
}

std::string time_text(Duration time) {
  if (time >= ms(10)) return fmt::format("{:.1f} ms", time.seconds() * 1e3);
  return fmt::format("{:.1f} us", time.seconds() * 1e6);
}

std::string way_text(const LiveFigures::Way& way) {
  std::string text = fmt::format("{} packets, {} bytes", way.packets, way.bytes);
  if (const double rate = way.bits_per_second(); rate > 0)
    text += fmt::format(", data at {:.2f} Gb/s", rate / 1e9);
  return text;
}

}  // namespace

double LiveFigures::Way::bits_per_second() const {
  if (first == Time::never() || last <= first) return 0;
  return static_cast<double>(bytes_after_first) * 8 / (last - first).seconds();
}

LiveFabric::LiveFabric(const Scenario& scenario)
    : scenario_(scenario),
      network_(scenario.plan.topology, scenario.network),
      given_(scenario.plan.topology.nodes),
      is_live_(scenario.plan.topology.nodes),
      figures_(scenario.plan.topology.nodes) {
  network_.set_trace(this);
  network_.set_application(this);
  for (const Flow& flow : scenario.flows)
    if (!network_.add_flow(flow))
      mistake_ = fmt::format("there is no way from {} to {}", scenario.plan.names[flow.source],
                             scenario.plan.names[flow.destination]);
}

std::string LiveFabric::mistake_in(const Scenario& scenario) {
  const Technology technology = scenario.network.technology;
  if (technology == Technology::kRoCEv2 || technology == Technology::kInfiniBand) return {};
  return fmt::format("its technology is {}, and live processes speak rocev2 or infiniband",
                     name_of(scenario.network.technology));
}

void LiveFabric::send(LivePacket packet) {
  packet.given = now_;
  make_live(packet.source);
  if (packet.dlid < kFirstMulticastLID)
    make_live(packet.destination);
  else
    std::ranges::for_each(scenario_.plan.hosts, [this](NodeIndex host) { make_live(host); });
  count(figures_[packet.source].sent, packet, now_);
  const NodeIndex source = packet.source;
  given_[source].push_back(std::move(packet));
  network_.set_alarm(source, now_, source);
}

void LiveFabric::make_live(NodeIndex host) {
  if (is_live_[host]) return;
  is_live_[host] = true;
  live_.push_back(host);
}

std::size_t LiveFabric::most_bytes() const {
  if (!is_infiniband()) return kMostBytes;
  return scenario_.network.infiniband.longest_packet() - kLocalOverheadBytes + kICRCSize;
}

void LiveFabric::on_alarm(u32 host, Time /*now*/) {
  LivePacket packet = std::move(given_[host].front());
  given_[host].pop_front();
  network_.host(host).send_live(std::move(packet));
}

void LiveFabric::run(Time until) {
  (void)network_.run(until);
  now_ = until;
  collect();
}

void LiveFabric::collect() {
  for (const NodeIndex host : live_) {
    std::vector<LivePacket>& packets = network_.host(host).arrived_live();
    LiveFigures& figures = figures_[host];
    for (LivePacket& packet : packets) {
      count(figures.received, packet, packet.arrived);
      figures.latency.add(packet.arrived - packet.given);
      if (ecn_of(packet.traffic_class) == ECN::kCE) ++figures.marked;
      arrived_.push_back(std::move(packet));
    }
    packets.clear();
    std::vector<LeftPacket>& left = network_.host(host).left_live();
    left_.insert(left_.end(), left.begin(), left.end());
    left.clear();
  }
  std::ranges::stable_sort(arrived_, {}, &LivePacket::arrived);
}

void LiveFabric::on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) {
  const Duration lasts = pause_time(static_cast<u16>(quanta), network_.port(node, port).rate);
  figures_[node].paused.on_pause(priority, lasts, now);
}

std::string LiveFabric::text_of(NodeIndex host) const {
  const LiveFigures& figures = figures_[host];
  const LatencyHistogram& latency = figures.latency;
  return fmt::format(
      "{}: sent {}; {} pauses, {} in all\n"
      "{}: received {}; {} marked; latency p50 {}, p99 {}, longest {}\n",
      scenario_.plan.names[host], way_text(figures.sent), figures.paused.pauses(),
      time_text(figures.paused.total(now_)), scenario_.plan.names[host], way_text(figures.received),
      figures.marked, time_text(latency.percentile(50)), time_text(latency.percentile(99)),
      time_text(latency.longest()));
}

std::string LiveFabric::text() const {
  const Counters counters = network_.counters();
  const std::string deadlock =
      network_.deadlock() ? fmt::format("fabric: a deadlock: {} queues wait for each other\n",
                                        network_.deadlock()->cycle.size())
                          : "";
  return deadlock + fmt::format(
                        "fabric: {} simulated; {} marks, {} pauses, {} dropped by switches, {} "
                        "lost on links; {} of "
                        "{} flows of the scenario finished\n",
                        time_text(now_ - Time()), counters.marks, counters.pauses,
                        counters.drops + counters.early_drops + counters.watchdog_drops,
                        counters.lost(), network_.flows_finished(), scenario_.flows.size());
}

}  // namespace verbena::fabric
