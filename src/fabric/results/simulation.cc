#include "fabric/results/simulation.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/results/alone_time.h"

namespace verbena::fabric {
namespace {

constexpr Duration kLastFrames = ms(1);  // until pauses end and notifications arrive

HostConfig first_host(const Scenario& scenario) {
  return scenario.network.host(scenario.plan.topology.links.front().config);
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRunning: return "interrupted";
    case Outcome::kComplete: return "complete";
    case Outcome::kTimeIsUp: return "time is up";
    case Outcome::kDeadlock: return "deadlock";
    case Outcome::kStalled: return "stalled";
  }
  CHECK_UNREACHABLE();
}

Simulation::Simulation(const Scenario& scenario)
    : scenario_(scenario),
      network_(scenario.plan.topology, scenario.network),
      record_(scenario.plan.topology,
              static_cast<u32>(std::min<std::size_t>(scenario.flows.size(), kRatedFlows)),
              NetworkRecord::kMostPoints),
      flows_(scenario.flows.size()) {
  network_.set_trace(this);
  const HostConfig host = first_host(scenario);
  const PacketSizes sizes = packet_sizes(scenario.network, host);
  const Duration pcie = host.pcie.posting + host.pcie.completion;
  for (u32 i = 0; i < scenario.flows.size(); ++i) {
    const Flow& flow = scenario.flows[i];
    if (!network_.add_flow(flow)) {
      mistake_ = fmt::format("there is no way from {} to {}", scenario.plan.names[flow.source],
                             scenario.plan.names[flow.destination]);
      return;
    }
    flows_[i].alone = alone_time(flow, sizes, network_) + pcie;
  }
}

void Simulation::capture(const std::vector<u32>& links) {
  capture_.emplace(scenario_.plan, links, scenario_.network.technology);
  for (const u32 link : links)
    for (const u32 end : {2 * link, 2 * link + 1})
      network_.tap(ports().ends()[end].node, ports().ends()[end].port);
}

bool Simulation::run_network(Time until) {
  const bool more = network_.run(until);
  if (capture_)
    for (const SentFrame& sent : network_.take_tapped())
      capture_->add(sent, ports().ends()[ports().end_of(sent.node, sent.port)]);
  return more;
}

bool Simulation::advance() {
  const Time stop = std::min(record_.next_sample(), scenario_.end);
  const bool more = run_network(stop);
  now_ = stop;
  if (now_ >= record_.next_sample()) record_.sample(network_, now_);
  if (network_.flows_finished() + network_.flows_failed() == flows_.size())
    finish(Outcome::kComplete);
  else if (network_.deadlock() && !scenario_.network.switches.pfc.watchdog.enabled)
    finish(Outcome::kDeadlock);
  else if (now_ >= scenario_.end)
    finish(Outcome::kTimeIsUp);
  else if (!more || is_stalled())
    finish(Outcome::kStalled);
  return outcome_ == Outcome::kRunning;
}

bool Simulation::is_stalled() {
  const u64 frames = network_.counters().data_hops;
  const bool waits = std::ranges::any_of(scenario_.flows,
                                         [this](const Flow& flow) { return flow.start >= moved_; });
  if (frames != moved_frames_ || waits) {
    moved_frames_ = frames;
    moved_ = now_;
  }
  return now_ - moved_ > kPatience;
}

void Simulation::finish(Outcome outcome) {
  outcome_ = outcome;
  totals_ = record_.totals(network_, measured_until());
  record_.finish(measured_until());
  if (outcome == Outcome::kComplete) run_network(now_ + kLastFrames);
}

Time Simulation::measured_until() const {
  if (flows_.empty() || network_.flows_finished() != flows_.size()) return now_;
  return std::ranges::max(flows_, {}, &FlowResult::finished).finished;
}

std::vector<PortTotal> Simulation::totals() const {
  return totals_.empty() ? record_.totals(network_, now_) : totals_;
}

std::vector<Duration> Simulation::held_times() const {
  std::vector<Duration> held = record_.paused_times();
  const std::vector<PortTotal> totals = this->totals();
  for (u32 i = 0; i < held.size(); ++i) held[i] = held[i] + totals[i].waited_for_credits;
  return held;
}

}  // namespace verbena::fabric
