// The faults of a Network, which are put into effect between windows. network_faults.h
#include <algorithm>
#include <array>
#include <functional>

#include "fabric/network.h"

namespace verbena::fabric {

void Network::plan(const NetworkFaults& faults) {
  using Kind = Change::Kind;
  const auto add = [this](Time at, Kind kind, u32 subject) {
    if (at != Time::never()) changes_.push_back({at, kind, subject});
  };
  for (const LinkOutage& outage : faults.outages) {
    CHECK(outage.link < topology_.links.size() && outage.down < outage.up);
    add(outage.down, Kind::kLinkDown, outage.link);
    add(outage.down + faults.convergence, Kind::kRoutes, 0);
    if (outage.up == Time::never()) continue;
    add(outage.up, Kind::kLinkUp, outage.link);
    add(outage.up + faults.convergence, Kind::kRoutes, 0);
  }
  stuck_pauses_ = faults.stuck_pauses;
  for (u32 i = 0; i < stuck_pauses_.size(); ++i) {
    add(stuck_pauses_[i].from, Kind::kPause, i);
    add(stuck_pauses_[i].until, Kind::kResume, i);
  }
  std::ranges::stable_sort(changes_, std::ranges::less{}, &Change::at);
  std::ranges::reverse(changes_);  // the last first
  if (faults.outages.empty()) return;
  down_.assign(topology_.links.size(), false);
  deaf_until_.assign(ports_.size(), Time::from_ps(-1));
}

// Adds a filter at each end of the link. Packets that arrive at the node of the rules were sent by
// the other node.
void Network::add_filters(const std::vector<LinkRules>& all, u64 seed) {
  if (all.empty()) return;
  filters_.resize(ports_.size());
  PRNG seeds(seed ^ 0x6661756c74);  // not the seeds of other random choices
  for (const LinkRules& rules : all)
    for (const u32 place : places_of(rules.link)) {
      const bool receives = ports_[place].node == rules.node;
      filters_[place].emplace_back(
          rules.rules, receives ? faults::Direction::kReceive : faults::Direction::kTransmit,
          seeds.next());
    }
}

void Network::apply(const Change& change) {
  now_ = std::max(now_, change.at);
  for (const auto& domain : domains_) domain->now = now_;
  switch (change.kind) {
    case Change::Kind::kLinkDown: return change_link(change.subject, false);
    case Change::Kind::kLinkUp: return change_link(change.subject, true);
    case Change::Kind::kRoutes: return change_routes();
    case Change::Kind::kPause: return change_pause(stuck_pauses_[change.subject], true);
    case Change::Kind::kResume: return change_pause(stuck_pauses_[change.subject], false);
  }
}

void Network::change_routes() {
  routes_ = Routes(topology_, down_, parallel_links_);
  if (tables_) tables_.emplace(topology_, engine_, down_);
  for (const auto& host : hosts_)
    if (host != nullptr) host->on_routes_changed();
}

// Returns the places among all ports of the link's ports at its a and its b.
std::array<u32, 2> Network::places_of(u32 link) const {
  u32 nth[2] = {0, 0};  // of the ends' ports
  const TopologyLink& wanted = topology_.links[link];
  for (u32 i = 0; i < link; ++i)
    for (const NodeIndex node : {topology_.links[i].a, topology_.links[i].b}) {
      nth[0] += node == wanted.a ? 1 : 0;
      nth[1] += node == wanted.b ? 1 : 0;
    }
  return {first_port_[wanted.a] + nth[0], first_port_[wanted.b] + nth[1]};
}

void Network::set_link(u32 link, bool up) {
  if (down_.empty()) down_.assign(topology_.links.size(), false);
  if (deaf_until_.empty()) deaf_until_.assign(ports_.size(), Time::from_ps(-1));
  is_faulty_ = true;
  change_link(link, up);
}

void Network::set_error_rate(u32 link, double probability) {
  if (corrupted_.empty()) corrupted_.assign(ports_.size(), 0);
  is_faulty_ = true;
  for (const u32 place : places_of(link))
    ports_[place].error_rate = static_cast<float>(probability);
}

void Network::change_link(u32 link, bool up) {
  if (down_[link] != up) return;  // it is so already
  down_[link] = !up;
  const std::array<u32, 2> places = places_of(link);
  for (const u32 place : places) {
    Port& port = ports_[place];
    port.up = up;
    if (!up)
      deaf_until_[port.peer] = std::max(port.free_at, now_) + port.delay + ps(i64{port.latency_ps});
  }
  for (const u32 place : places) {
    const Port& port = ports_[place];
    if (SwitchNode* const at_switch = switches_[port.node].get(); at_switch != nullptr)
      up ? at_switch->on_link_up(port.number) : at_switch->on_link_down(port.number);
    else
      up ? hosts_[port.node]->on_link_up(port.number)
         : hosts_[port.node]->on_link_down(port.number);
  }
}

void Network::change_pause(const StuckPause& pause, bool on) {
  for (u32 priority = 0; priority < kPriorities; ++priority) {
    if ((pause.priorities >> priority & 1) == 0) continue;
    if (SwitchNode* const at_switch = switches_[pause.node].get(); at_switch != nullptr)
      on ? at_switch->begin_stuck_pause(pause.port, priority)
         : at_switch->end_stuck_pause(pause.port, priority);
    else
      on ? hosts_[pause.node]->begin_stuck_pause(pause.port, priority)
         : hosts_[pause.node]->end_stuck_pause(pause.port, priority);
  }
}

}  // namespace verbena::fabric
