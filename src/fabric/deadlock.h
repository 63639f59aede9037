// Deadlocks: queues that wait for each other in a circle, so that none will ever send again. PFC
// makes them where routes are cyclic: Hu et al., Deadlocks in Datacenter Networks: Why Do They
// Form, and How to Avoid Them, HotNets 2016.
//
// A queue of a switch is stuck when it has waited under a pause for some time. It waits for the
// queues of its neighbour that hold frames which arrived by the neighbour's port that asked for the
// pause. A queue that waits for one that is not stuck, or for a host, may go on later. When all
// such queues are removed, again and again, the remaining ones wait only for each other. In
// InfiniBand, likewise, a lane is stuck when it has waited for credits: they come when the packets
// leave that arrived by its link.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/port.h"
#include "fabric/switch_node.h"

namespace verbena::fabric {

struct WaitingQueue {
  NodeIndex node = 0;
  u32 port = 0;  // of the node's
  u32 priority = 0;
  friend bool operator==(const WaitingQueue&, const WaitingQueue&) = default;
};

struct Deadlock {
  Time seen;
  u32 queues = 0;                   // that will never send again
  std::vector<WaitingQueue> cycle;  // each waits for the next, the last for the first
};

// "4:1 -> 5:2 -> 4:1, priority 3", nodes and their ports.
[[nodiscard]] std::string to_string(const Deadlock& deadlock);

// `switches`: by node, nullptr for a host. `ports`: all; `first_port`: of each node. A queue is
// stuck if it has been paused since `since` or before.
[[nodiscard]] std::optional<Deadlock> find_deadlock(
    std::span<const std::unique_ptr<SwitchNode>> switches, std::span<const Port> ports,
    std::span<const u32> first_port, Time since, Time now);

}  // namespace verbena::fabric
