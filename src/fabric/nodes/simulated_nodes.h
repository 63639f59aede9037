// SimulatedNodes: application::Node (application/node.h) on the hosts of a simulated network.
//
// A message of a node is a message of the network: an RDMA WRITE with immediate data on an RC QP
// of the host's device, with congestion control, PFC and losses. A SEND is thus 20 bytes longer
// than on a real wire. A READ is a request of 16 bytes, and a message with the data. A SEND
// without a receive waits at the receiver, which stands for RNR retries without limit.
//
// Connections use channels, which are planned for pairs of nodes before the simulation: one
// direction each, whose QPs exist while the channel is in use. Each call of the network belongs to
// one host and touches that host's node and its channels' queues only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "application/node.h"
#include "fabric/network.h"
#include "fabric/nodes/node_channels.h"

namespace verbena::fabric {

struct NodePair {
  NodeIndex active = 0, passive = 0;
  u32 channels = 1;  // connections at a time
};

struct NodesConfig {
  std::vector<NodePair> pairs{};
  u8 priority = 3;
  u32 depth = 32;            // messages of a channel in the network; more wait in the node
  u32 first_connection = 0;  // connections of the network that exist already
  u32 word_mark = 0;         // alarms have this bit, and those of another application have not
};

class SimulatedNodes final : public Application {
 public:
  // `network` outlives it, and has the hosts. The caller sets it as the network's application.
  SimulatedNodes(Network& network, const NodesConfig& config);
  ~SimulatedNodes() override;
  SimulatedNodes(const SimulatedNodes&) = delete;
  SimulatedNodes& operator=(const SimulatedNodes&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }  // all pairs have a path
  // `host` is in a pair. `program` outlives the simulation; its first call follows its first event.
  [[nodiscard]] application::Node& node(NodeIndex host);
  void run_on(NodeIndex host, application::Program& program);

  void on_arrival(u32 connection, u32 word, Time now) override;
  void on_sent(u32 connection, Time now) override;
  void on_alarm(u32 word, Time now) override;

 private:
  SimulatedNode& make_node(NodeIndex host);
  void plan(const NodePair& pair, const NodesConfig& config);

  NodeChannels channels_;
  bool is_connected_ = true;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;  // by host
};

}  // namespace verbena::fabric
