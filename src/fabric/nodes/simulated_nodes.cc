#include "fabric/nodes/simulated_nodes.h"

#include "base/check.h"
#include "fabric/nodes/simulated_node.h"

namespace verbena::fabric {

SimulatedNodes::SimulatedNodes(Network& network, const NodesConfig& config)
    : network_(network),
      first_connection_(config.first_connection),
      word_mark_(config.word_mark),
      depth_(config.depth) {
  for (const NodePair& pair : config.pairs) plan(pair, config);
}

SimulatedNodes::~SimulatedNodes() = default;

SimulatedNode& SimulatedNodes::make_node(NodeIndex host) {
  if (nodes_.size() <= host) nodes_.resize(host + 1);
  if (nodes_[host] == nullptr) nodes_[host] = std::make_unique<SimulatedNode>(*this, host);
  return *nodes_[host];
}

void SimulatedNodes::plan(const NodePair& pair, const NodesConfig& config) {
  ConnectionConfig ends{.source = pair.active,
                        .destination = pair.passive,
                        .depth = config.depth,
                        .priority = config.priority};
  SimulatedNode& active = make_node(pair.active);
  SimulatedNode& passive = make_node(pair.passive);
  for (u32 i = 0; i < pair.channels && is_connected_; ++i) {
    is_connected_ = network_.plan_connection(ends);
    std::swap(ends.source, ends.destination);
    is_connected_ = is_connected_ && network_.plan_connection(ends);
    std::swap(ends.source, ends.destination);
    const u32 there = static_cast<u32>(directions_.size()), back = there + 1;
    const u32 at_active = active.add_channel(there, pair.passive, true);
    const u32 at_passive = passive.add_channel(back, pair.active, false);
    directions_.push_back(std::make_unique<Direction>(&active, &passive, at_active, at_passive));
    directions_.push_back(std::make_unique<Direction>(&passive, &active, at_passive, at_active));
  }
}

application::Node& SimulatedNodes::node(NodeIndex host) {
  CHECK(host < nodes_.size() && nodes_[host] != nullptr);
  return *nodes_[host];
}

void SimulatedNodes::run_on(NodeIndex host, application::Program& program) {
  static_cast<SimulatedNode&>(node(host)).run(program);
}

application::Address SimulatedNodes::address_of(NodeIndex host, u16 port) {
  return {GID::from_ipv4(fabric::address_of(host)), port};
}

void SimulatedNodes::on_arrival(u32 connection, u32, Time now) {
  Direction& direction = *directions_[connection - first_connection_];
  direction.receiver->on_packet(direction.receiver_channel, direction.queue.pop(), now);
}

void SimulatedNodes::on_sent(u32 connection, Time now) {
  const Direction& direction = *directions_[connection - first_connection_];
  direction.sender->on_sent(direction.sender_channel, now);
}

void SimulatedNodes::on_alarm(u32 word, Time now) { nodes_[word & ~word_mark_]->on_alarm(now); }

}  // namespace verbena::fabric
