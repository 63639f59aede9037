// Spreading: which of several equal ways a frame takes.
//   kFlowHash        a hash of addresses and ports, so that a flow keeps its order. RFC 2992, 2
//   kFlowAndQPHash   of the destination QPN too, as switches that parse the BTH do: QPs between two
//                    hosts spread even where they share a UDP source port
//   kPacketSpray     any way, for each frame anew. Dixit et al., On the Impact of Packet Spraying
//   in
//                    Data Center Networks, INFOCOM 2013
//   kFlowlet         the way that the flow had, or any after it was silent for flowlet_gap. Vanini
//   et
//                    al., Let It Flow (LetFlow), NSDI 2017, 3
//   kLeastLoaded     the way with the shortest queue, for each frame anew; of equals, the one of
//   the
//                    hash. Ghorbani et al., DRILL, SIGCOMM 2017, with all queues looked at
// Spraying and least-loaded ways let frames of a QP overtake each other, and a flowlet may. RC as
// IBTA 9.7.5 has it takes each gap for a loss: the responder sends a NAK, the requester goes back,
// and what was only late is sent again. Such a network shows that, and does not hide it; equal ways
// with equal queues do little harm, unequal ones much.
// Same calls in the same order give the same choices: what is random is of this switch alone.
#pragma once

#include <span>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/ecmp.h"
#include "fabric/frame.h"

namespace verbena::fabric {

struct SpreadingConfig {
  enum class Kind : u8 { kFlowHash, kFlowAndQPHash, kPacketSpray, kFlowlet, kLeastLoaded };
  Kind kind = Kind::kFlowHash;
  Duration flowlet_gap = us(100);  // LetFlow, 4.2: 100 to 500 us
  u32 flowlets = 4096;             // that are remembered, by hash; 1 and more
};

class Spreading {
 public:
  Spreading(const SpreadingConfig& config, u32 hash_seed, u64 seed);

  // `ways`: ports, at least two. queued(port): bytes that wait there.
  template <typename Queued>
  [[nodiscard]] u16 choose(std::span<const u16> ways, const FlowTuple& flow, const Frame& frame,
                           Time now, const Queued& queued) {
    if (config_.kind == SpreadingConfig::Kind::kFlowHash)
      return ways[flow_hash(flow, hash_seed_) % static_cast<u32>(ways.size())];
    if (config_.kind != SpreadingConfig::Kind::kLeastLoaded)
      return choose_blindly(ways, flow, frame, now);
    const u32 first = flow_hash(flow, hash_seed_) % static_cast<u32>(ways.size());
    u16 best = ways[first];
    u64 least = queued(best);
    for (const u16 way : ways) {
      const u64 bytes = queued(way);
      if (bytes >= least) continue;
      least = bytes;
      best = way;
    }
    return best;
  }

 private:
  struct Flowlet {
    u16 way = 0;
    Time last = Time::from_ps(-1);  // its last frame; before 0: none yet
  };

  u16 choose_blindly(std::span<const u16> ways, const FlowTuple& flow, const Frame& frame,
                     Time now);
  u16 any(std::span<const u16> ways) { return ways[prng_.below(ways.size())]; }
  u16 of_flowlet(std::span<const u16> ways, u32 hash, Time now);

  const SpreadingConfig config_;
  const u32 hash_seed_;
  PRNG prng_;
  std::vector<Flowlet> flowlets_;  // kFlowlet
};

}  // namespace verbena::fabric
