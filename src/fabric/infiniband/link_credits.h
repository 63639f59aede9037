// LinkCredits: flow control at one end of an InfiniBand link. IBTA Vol 1, 7.9.4. Buffers count in
// blocks of 64 bytes, a packet takes whole ones, and counters have 12 bits:
//   FCTBS  total blocks sent on a lane
//   FCCL   credit limit: how far FCTBS may go. The receiver says it: ABR, its blocks received, and
//          what is free
// A packet of n blocks may go while (FCCL - (FCTBS + n)) mod 4096 <= 2048, so that a lane has 2048
// blocks, 128 KiB, at most. Here n is that of the longest packet: an end that asks for it before it
// looks at what it has to send, as pauses do, sends no shorter one instead.
// The neighbour is told of free blocks when there are `update_blocks` of them, or at once where it
// could not send otherwise.
//
// Invariant: what is held is never more than the buffer has, since the neighbour heeds the limit.
#pragma once

#include <array>

#include "fabric/infiniband/config.h"

namespace verbena::fabric {

struct CreditConfig {
  static constexpr u32 kBlockBytes = 64, kMostBlocks = 2048;
  u32 buffer_blocks = kMostBlocks;  // of each lane; longest_blocks .. kMostBlocks
  u32 longest_blocks = 65;          // of a packet
  u32 update_blocks = 1;
};

// For a port on this link; both ends of one get the same. Where nothing is said, the buffer is what
// the link carries in a round trip of a credit (both delays, the switch, and three packets: the one
// that leaves, the one that a flow control packet waits for, and the one being sent) and updates
// besides, 128 KiB at most.
[[nodiscard]] CreditConfig credits_for(const InfiniBandConfig& config, const LinkConfig& link);

class LinkCredits {
 public:
  explicit LinkCredits(const CreditConfig& config);

  // --- sending: what the neighbour has room for
  [[nodiscard]] bool may_send(u32 lane) const {
    const u32 credit = lanes_[lane].limit - (lanes_[lane].sent + config_.longest_blocks);
    return (credit & kMask) <= CreditConfig::kMostBlocks;
  }
  void on_sent(u32 lane, u32 bytes) { lanes_[lane].sent += blocks_of(bytes); }
  void on_limit(u32 lane, u16 limit) { lanes_[lane].limit = limit; }  // FCCL has come

  // --- receiving: what there is room for here
  void on_received(u32 lane, u32 bytes);
  void on_freed(u32 lane, u32 bytes);
  [[nodiscard]] bool update_is_due(u32 lane) const;
  // The FCCL to send now.
  [[nodiscard]] u16 tell(u32 lane);
  [[nodiscard]] u32 held_bytes(u32 lane) const {
    return lanes_[lane].held * CreditConfig::kBlockBytes;
  }

 private:
  static constexpr u32 kMask = 0xfff;
  static u32 blocks_of(u32 bytes) {
    return (bytes + CreditConfig::kBlockBytes - 1) / CreditConfig::kBlockBytes;
  }
  [[nodiscard]] u32 limit_of(u32 lane) const {
    return (lanes_[lane].received + config_.buffer_blocks - lanes_[lane].held) & kMask;
  }

  struct Lane {
    u32 sent = 0, limit = 0;     // FCTBS, FCCL
    u32 received = 0, held = 0;  // ABR, and of it what is here
    u32 told = 0;                // FCCL that was sent last
  };
  const CreditConfig config_;
  std::array<Lane, kVirtualLanes> lanes_{};
};

}  // namespace verbena::fabric
