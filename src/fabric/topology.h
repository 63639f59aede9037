// Topology: nodes and the links between them. Nodes are numbered 0 .. nodes - 1; which of them are
// switches is said by number, the others are hosts. A node's ports are numbered in the order in
// which its links are listed.
#pragma once

#include <string>
#include <vector>

#include "fabric/link.h"

namespace verbena::fabric {

using NodeIndex = u32;

struct TopologyLink {
  NodeIndex a = 0, b = 0;
  LinkConfig config{};
};

struct Topology {
  static constexpr u32 kMostLinksOfHost = 16;

  u32 nodes = 0;
  std::vector<bool> is_switch;  // of each node
  std::vector<TopologyLink> links;

  [[nodiscard]] NodeIndex add_host() { return add(false); }
  [[nodiscard]] NodeIndex add_switch() { return add(true); }
  void join(NodeIndex a, NodeIndex b, const LinkConfig& link) { links.push_back({a, b, link}); }

 private:
  NodeIndex add(bool is_a_switch) {
    is_switch.push_back(is_a_switch);
    return nodes++;
  }
};

// Returns the error in the topology; "" if there is none. A link joins two different nodes that
// exist, at a rate above 0; a host has at most kMostLinksOfHost.
[[nodiscard]] std::string check(const Topology& topology);

}  // namespace verbena::fabric
