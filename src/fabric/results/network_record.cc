#include "fabric/results/network_record.h"

#include <algorithm>

namespace verbena::fabric {

namespace {

double part_of(Duration part, Duration all) {
  return all > Duration() ? part.seconds() / all.seconds() : 0.0;
}

}  // namespace

NetworkRecord::NetworkRecord(const Topology& topology, u32 rated_flows, std::size_t most_points)
    : ports_(topology),
      most_points_(most_points),
      paused_(ports_.ends().size()),
      queues_(ports_.ends().size()),
      sent_(ports_.ends().size()),
      marks_(ports_.ends().size()),
      waits_(ports_.ends().size()),
      rates_(rated_flows),
      held_(ports_.ends().size()) {
  for (const LinkEnd& end : ports_.ends())
    port_rates_.push_back(topology.links[end.link].config.rate);
}

void NetworkRecord::sample(const Network& network, Time now) {
  const u32 number = samples_.take(now);
  for (u32 i = 0; i < ports_.ends().size(); ++i) {
    const LinkEnd& end = ports_.ends()[i];
    sent_.note(i, number, network.sent_bytes(end.node, end.port, now));
    waits_.note(i, number, static_cast<u64>(network.waited_for_credits(end.node, end.port).ps()));
    const SwitchNode* const at_switch = network.switch_at(end.node);
    if (at_switch == nullptr) continue;
    queues_.note(i, number, at_switch->waiting_bytes(end.port));
    marks_.note(i, number, at_switch->marked_frames(end.port));
  }
  for (u32 flow = 0; flow < rates_.size(); ++flow)
    rates_.note(flow, number, network.rate_of(flow).value_or(Rate()).bps());
  thin_out();
}

void NetworkRecord::thin_out() {
  const std::size_t points =
      queues_.points() + sent_.points() + marks_.points() + waits_.points() + rates_.points();
  if (samples_.times().size() < kMostSamples && points < most_points_ + 64 * sent_.size()) return;
  samples_.halve();
  for (SeriesSet* const series : {&queues_, &sent_, &marks_, &waits_, &rates_}) series->halve();
}

void NetworkRecord::finish(Time now) {
  for (u32 end = 0; end < held_.size(); ++end)
    if (const auto span = held_[end].finish(now)) paused_[end] = paused_[end] + span->length();
  finished_ = true;
}

void NetworkRecord::on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta,
                                      Time now) {
  const u32 end = ports_.end_of(node, port);
  if (pauses_.size() < kMostPauses)
    pauses_.push_back({now, end, static_cast<u16>(quanta), static_cast<u8>(priority)});
  if (finished_) return;
  const Duration time = pause_time(static_cast<u16>(quanta), port_rates_[end]);
  if (const auto span = held_[end].on_frame(priority, time, now))
    paused_[end] = paused_[end] + span->length();
}

std::vector<PortTotal> NetworkRecord::totals(const Network& network, Time measured_until) const {
  std::vector<PortTotal> totals;
  for (u32 i = 0; i < ports_.ends().size(); ++i) {
    const LinkEnd& end = ports_.ends()[i];
    const SwitchNode* const at_switch = network.switch_at(end.node);
    const Duration busy = network.port(end.node, end.port).busy_time(measured_until);
    totals.push_back({.sent_bytes = network.sent_bytes(end.node, end.port),
                      .marks = at_switch != nullptr ? at_switch->marked_frames(end.port) : 0,
                      .utilization = part_of(busy, measured_until - Time()),
                      .waited_for_credits = network.waited_for_credits(end.node, end.port)});
  }
  network.for_each_longest_queue([&](NodeIndex node, u32 port, u32 bytes) {
    totals[ports_.end_of(node, port)].longest_queue_bytes = bytes;
  });
  return totals;
}

}  // namespace verbena::fabric
