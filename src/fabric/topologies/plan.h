// Plan: a topology as people draw it: nodes with names, and the hosts in the order in which
// workloads count them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology.h"

namespace verbena::fabric {

struct Plan {
  Topology topology;
  std::vector<std::string> names;  // of each node
  std::vector<NodeIndex> hosts;
  std::vector<std::string> notes{};  // what is otherwise than was asked for, or than can be bought

  NodeIndex add_host(std::string name);
  NodeIndex add_switch(std::string name);

  // By its name, or the place of a host among the hosts.
  [[nodiscard]] std::optional<NodeIndex> host_named(std::string_view name) const;
  // "a-b" or "b-a", by the nodes' names, or a link's number.
  [[nodiscard]] std::optional<u32> link_named(std::string_view name) const;
  [[nodiscard]] std::string link_name(u32 link) const;
};

// The links of a generated topology: to hosts, and between switches.
struct PlanLinks {
  LinkConfig host{}, fabric{};
};

// How many links each node is away from the nearest host: 0 for hosts, 1 for their switches, ...
[[nodiscard]] std::vector<u32> tiers(const Topology& topology);
// Hosts that can reach each other, by their places among the hosts: one list for each island.
[[nodiscard]] std::vector<std::vector<NodeIndex>> islands(const Plan& plan);

}  // namespace verbena::fabric
