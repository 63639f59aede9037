// RingOrder: in which order a ring visits the ranks. Plain: by number. Along rails: all GPUs of a
// node, then the next node, entered at the GPU of the number that the last one was left from, so
// that NIC i sends to NIC i alone. Channel c enters its first node at GPU c, and channels share the
// NICs.
//
// A ring enters and leaves a node at two different GPUs, so its entries alternate between two
// numbers, and with an odd number of nodes the last has a third. With two GPUs a node and an odd
// number of nodes there is no such ring: one hop of it changes the rail.
#pragma once

#include "collectives/operation.h"

namespace verbena::collectives {

class RingOrder {
 public:
  RingOrder(const Shape& shape, u32 channel) : shape_(shape), channel_(channel) {}

  [[nodiscard]] u32 rank_at(u32 position) const;
  [[nodiscard]] u32 position_of(u32 rank) const;

 private:
  [[nodiscard]] bool along_rails() const { return shape_.algorithm == Algorithm::kRailRing; }
  [[nodiscard]] u32 entry(u32 node) const;
  [[nodiscard]] u32 exit_distance(u32 node) const;  // from the entry, in GPUs

  const Shape& shape_;
  u32 channel_;
};

}  // namespace verbena::collectives
