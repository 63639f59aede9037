#include "collectives/ring_order.h"

namespace verbena::collectives {

u32 RingOrder::entry(u32 node) const {
  const u32 gpus = shape_.ranks_per_node, nodes = shape_.nodes();
  const bool third = node + 1 == nodes && nodes % 2 == 1 && gpus > 2;
  return (channel_ + (third ? 2 : node % 2)) % gpus;
}

u32 RingOrder::exit_distance(u32 node) const {
  const u32 gpus = shape_.ranks_per_node;
  const u32 distance = (entry((node + 1) % shape_.nodes()) + gpus - entry(node)) % gpus;
  return distance != 0 ? distance : gpus - 1;  // one node, or no way along rails
}

// From the entry the others by number, without the exit, which is last.
u32 RingOrder::rank_at(u32 position) const {
  if (!along_rails()) return position;
  const u32 gpus = shape_.ranks_per_node, node = position / gpus, place = position % gpus;
  const u32 last = exit_distance(node);
  const u32 distance = place + 1 == gpus ? last : place == 0 || place < last ? place : place + 1;
  return node * gpus + (entry(node) + distance) % gpus;
}

u32 RingOrder::position_of(u32 rank) const {
  if (!along_rails()) return rank;
  const u32 gpus = shape_.ranks_per_node, node = shape_.node_of(rank);
  const u32 distance = (shape_.local_of(rank) + gpus - entry(node)) % gpus;
  const u32 last = exit_distance(node);
  return node * gpus + (distance == last ? gpus - 1 : distance < last ? distance : distance - 1);
}

}  // namespace verbena::collectives
