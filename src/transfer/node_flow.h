// NodeFlow: a Flow whose lanes are connections of an application::Node, so of the live device or of
// a simulated host. The owner makes the connections, and passes their events on.
//
// Contract: after start() and on_event(), call pump(), then drain poll_outcome().
#pragma once

#include <map>
#include <vector>

#include "application/node.h"
#include "transfer/flow.h"

namespace verbena::transfer {

class NodeFlow {
 public:
  static constexpr u32 kTagBytes = 8;  // of a notification: the transfer's tag, big endian

  NodeFlow(application::Node& node, const FlowLimits& limits);
  ~NodeFlow();
  NodeFlow(const NodeFlow&) = delete;
  NodeFlow& operator=(const NodeFlow&) = delete;

  // Indexes of regions in copies. Their keys: of this node's memory, and of the peer's.
  [[nodiscard]] u32 add_local_region(u32 l_key);
  [[nodiscard]] u32 add_remote_region(u32 r_key);
  // The connection is established.
  void add_lane(application::ConnectionId connection);

  [[nodiscard]] Expected<void> start(TransferOrder order, u64 tag);
  // Returns false if the event is of no lane, or no kDone or kClosed.
  bool on_event(const application::Event& event);
  void pump();
  [[nodiscard]] std::optional<Outcome> poll_outcome();
  [[nodiscard]] const Flow& flow() const { return flow_; }

 private:
  void post(const Request& request);
  application::Node& node_;
  Flow flow_;
  struct Posted {
    u64 sequence = 0;
    bool is_notify = false, is_done = false;
  };
  struct Lane {
    application::ConnectionId connection = 0;
    std::deque<Posted> posted{};
    application::Region slots{};  // of notifications
  };
  std::vector<Lane> lanes_{};
  std::map<application::ConnectionId, u32> lane_of_{};
  std::vector<u32> local_keys_{}, remote_keys_{};
  std::map<u32, u64> tags_{};
};

[[nodiscard]] u64 read_tag(std::span<const u8> bytes);

}  // namespace verbena::transfer
