#include "fabric/nodes/simulated_nodes.h"

#include "base/check.h"
#include "fabric/nodes/simulated_node.h"

namespace verbena::fabric {

SimulatedNodes::SimulatedNodes(Network& network, const NodesConfig& config)
    : channels_{.network = network,
                .first_connection = config.first_connection,
                .word_mark = config.word_mark,
                .depth = config.depth} {
  for (const NodePair& pair : config.pairs) plan(pair, config);
}

SimulatedNodes::~SimulatedNodes() = default;

SimulatedNode& SimulatedNodes::make_node(NodeIndex host) {
  if (nodes_.size() <= host) nodes_.resize(host + 1);
  if (nodes_[host] == nullptr) nodes_[host] = std::make_unique<SimulatedNode>(channels_, host);
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
    is_connected_ = channels_.network.plan_connection(ends);
    std::swap(ends.source, ends.destination);
    is_connected_ = is_connected_ && channels_.network.plan_connection(ends);
    std::swap(ends.source, ends.destination);
    const u32 there = static_cast<u32>(channels_.directions.size()), back = there + 1;
    const u32 at_active = active.add_channel(there, pair.passive, true);
    const u32 at_passive = passive.add_channel(back, pair.active, false);
    channels_.directions.push_back(
        std::make_unique<ChannelDirection>(&active, &passive, at_active, at_passive));
    channels_.directions.push_back(
        std::make_unique<ChannelDirection>(&passive, &active, at_passive, at_active));
  }
}

application::Node& SimulatedNodes::node(NodeIndex host) {
  CHECK(host < nodes_.size() && nodes_[host] != nullptr);
  return *nodes_[host];
}

void SimulatedNodes::run_on(NodeIndex host, application::Program& program) {
  static_cast<SimulatedNode&>(node(host)).run(program);
}

void SimulatedNodes::on_arrival(u32 connection, u32, Time now) {
  ChannelDirection& direction = *channels_.directions[connection - channels_.first_connection];
  direction.receiver->on_packet(direction.receiver_channel, direction.queue.pop(), now);
}

void SimulatedNodes::on_sent(u32 connection, Time now) {
  const ChannelDirection& direction =
      *channels_.directions[connection - channels_.first_connection];
  direction.sender->on_sent(direction.sender_channel, now);
}

void SimulatedNodes::on_alarm(u32 word, Time now) {
  nodes_[word & ~channels_.word_mark]->on_alarm(now);
}

}  // namespace verbena::fabric
