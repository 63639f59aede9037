// NodeChannels: what the nodes of a simulated network have in common: the network, and the channels
// between them, one direction each. See SimulatedNodes.
#pragma once

#include <memory>
#include <vector>

#include "application/node.h"
#include "fabric/network.h"
#include "fabric/nodes/packet.h"

namespace verbena::fabric {

class SimulatedNode;

[[nodiscard]] inline application::Address node_address(NodeIndex host, u16 port) {
  return {GID::from_ipv4(address_of(host)), port};
}

// One direction of a channel.
struct ChannelDirection {
  ChannelDirection(SimulatedNode* from, SimulatedNode* to, u32 from_channel, u32 to_channel)
      : sender(from), receiver(to), sender_channel(from_channel), receiver_channel(to_channel) {}
  SimulatedNode* sender;
  SimulatedNode* receiver;
  u32 sender_channel, receiver_channel;  // the channel's number at either end
  PacketQueue queue{};
};

struct NodeChannels {
  Network& network;
  const u32 first_connection, word_mark, depth;                 // as in NodesConfig
  std::vector<std::unique_ptr<ChannelDirection>> directions{};  // by connection of the network
};

}  // namespace verbena::fabric
