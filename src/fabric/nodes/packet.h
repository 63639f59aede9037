// NodePacket: what one message between simulated nodes means. The network carries its size; the
// packet itself waits in the queue of its channel until the message arrives.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"

namespace verbena::fabric {

struct NodePacket {
  enum class Kind : u8 {
    kConnect,
    kAccept,
    kReject,
    kDisconnect,
    kSend,
    kWrite,
    kReadRequest,
    kReadResponse
  };
  static constexpr u32 kControlBytes = 256;  // a MAD
  static constexpr u32 kReadRequestBytes = 16;

  Kind kind = Kind::kSend;
  u32 incarnation = 0;  // of the connection on this channel: packets of an earlier one are stale
  u32 work = 0;         // READ: the requester's number of it
  u64 length = 0;
  std::vector<u8> bytes{};  // empty: counted
  u64 remote_address = 0;
  u32 r_key = 0;
  std::optional<u32> invalidate{};
  u16 port = 0;  // kConnect
};

// One direction of a channel. Two threads may simulate its ends, so it has a lock. The order does
// not depend on them: messages of a connection arrive in the order in which they were sent.
class PacketQueue {
 public:
  void push(NodePacket packet) {
    const std::lock_guard lock(mutex_);
    packets_.push_back(std::move(packet));
  }
  NodePacket pop() {
    const std::lock_guard lock(mutex_);
    NodePacket packet = std::move(packets_.front());
    packets_.pop_front();
    return packet;
  }

 private:
  std::mutex mutex_;
  std::deque<NodePacket> packets_;
};

}  // namespace verbena::fabric
