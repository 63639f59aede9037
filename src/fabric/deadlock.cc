#include "fabric/deadlock.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

struct Stuck {
  WaitingQueue queue;
  std::vector<u32> waits_for{};  // others that are stuck
  bool may_go_on = false;        // it waits for something else, too
};

class WaitGraph {
 public:
  WaitGraph(std::span<const std::unique_ptr<SwitchNode>> switches, std::span<const Port> ports,
            std::span<const u32> first_port)
      : switches_(switches), ports_(ports), first_port_(first_port) {}

  void add(const WaitingQueue& queue) {
    numbers_[key(queue)] = static_cast<u32>(stuck_.size());
    stuck_.push_back({.queue = queue});
  }
  [[nodiscard]] bool empty() const { return stuck_.empty(); }
  void join() {
    for (Stuck& stuck : stuck_) join(stuck);
  }
  // Removes the queues that wait for one that may go on, until there is none.
  void reduce() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Stuck& stuck : stuck_) {
        if (stuck.may_go_on) continue;
        stuck.may_go_on = std::ranges::any_of(
            stuck.waits_for, [this](u32 number) { return stuck_[number].may_go_on; });
        changed |= stuck.may_go_on;
      }
    }
  }
  [[nodiscard]] u32 left() const {
    return static_cast<u32>(std::ranges::count(stuck_, false, &Stuck::may_go_on));
  }
  // Returns a cycle of the queues that are left.
  [[nodiscard]] std::vector<WaitingQueue> cycle() const {
    const auto first = std::ranges::find(stuck_, false, &Stuck::may_go_on);
    std::vector<u32> way;
    u32 at = static_cast<u32>(first - stuck_.begin());
    while (std::ranges::find(way, at) == way.end()) {
      way.push_back(at);
      at = stuck_[at].waits_for.front();
    }
    std::vector<WaitingQueue> cycle;
    for (auto i = std::ranges::find(way, at); i != way.end(); ++i)
      cycle.push_back(stuck_[*i].queue);
    return cycle;
  }

 private:
  using Key = std::pair<u32, u32>;  // port of all, priority
  Key key(const WaitingQueue& queue) const {
    return {first_port_[queue.node] + queue.port, queue.priority};
  }

  void join(Stuck& stuck) {
    const Port& peer = ports_[ports_[key(stuck.queue).first].peer];
    const SwitchNode* const neighbour = switches_[peer.node].get();
    const u32 priority = stuck.queue.priority;
    bool holds_any = false;
    for (u32 port = 0; neighbour != nullptr && port < neighbour->port_count(); ++port) {
      if (!neighbour->holds(port, priority, peer.number)) continue;
      holds_any = true;
      const auto found = numbers_.find(key({peer.node, port, priority}));
      if (found != numbers_.end())
        stuck.waits_for.push_back(found->second);
      else
        stuck.may_go_on = true;
    }
    if (!holds_any) stuck.may_go_on = true;  // a host, or the end of the pause is on its way
  }

  const std::span<const std::unique_ptr<SwitchNode>> switches_;
  const std::span<const Port> ports_;
  const std::span<const u32> first_port_;
  std::vector<Stuck> stuck_;
  std::map<Key, u32> numbers_;
};

}  // namespace

std::string to_string(const Deadlock& deadlock) {
  std::string text;
  for (const WaitingQueue& queue : deadlock.cycle)
    fmt::format_to(std::back_inserter(text), "{}:{} -> ", queue.node, queue.port + 1);
  const WaitingQueue& first = deadlock.cycle.front();
  return text + fmt::format("{}:{}, priority {}", first.node, first.port + 1, first.priority);
}

std::optional<Deadlock> find_deadlock(std::span<const std::unique_ptr<SwitchNode>> switches,
                                      std::span<const Port> ports, std::span<const u32> first_port,
                                      Time since, Time now) {
  WaitGraph graph(switches, ports, first_port);
  for (NodeIndex node = 0; node < switches.size(); ++node) {
    if (switches[node] == nullptr) continue;
    for (u32 port = 0; port < switches[node]->port_count(); ++port)
      for (u32 priority = 0; priority < kPriorities; ++priority)
        if (switches[node]->is_stuck(port, priority, since)) graph.add({node, port, priority});
  }
  if (graph.empty()) return std::nullopt;
  graph.join();
  graph.reduce();
  if (graph.left() == 0) return std::nullopt;
  return Deadlock{.seen = now, .queues = graph.left(), .cycle = graph.cycle()};
}

}  // namespace verbena::fabric
