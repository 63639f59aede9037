#include "collectives/rail_direct.h"

namespace verbena::collectives {
namespace {

// The data for a node lies in three places: forwarded from GPUs of lower numbers, own, and
// forwarded from GPUs of higher numbers.
constexpr u64 kPieces = 3;

}  // namespace

Range RailDirect::blocks(Part memory, u32 first, u32 count) const {
  const u64 block = shape().bytes / ranks();
  return {memory * shape().bytes + first * block, count * block};
}

u64 RailDirect::steps(u32, u32 lane) const {
  const u64 nodes = shape().nodes();
  return lane == 0 ? 2 * nodes * (shape().ranks_per_node - 1) : 2 * kPieces * (nodes - 1);
}

Step RailDirect::step(u32 rank, u32 lane, u64 index) const {
  return lane == 0 ? within_node(rank, index) : between_nodes(rank, index);
}

// For each node, its own first: to each GPU here what is for the GPU of that number there.
Step RailDirect::within_node(u32 rank, u64 index) const {
  const u32 gpus = shape().ranks_per_node, local = shape().local_of(rank), first = rank - local;
  const u32 ahead = static_cast<u32>(index / 2 / (gpus - 1));
  const u32 distance = static_cast<u32>(index / 2 % (gpus - 1)) + 1;
  const u32 there = (shape().node_of(rank) + ahead) % shape().nodes() * gpus;
  const u32 to = (local + distance) % gpus, from = (local + gpus - distance) % gpus;
  if (index % 2 == 0) return {Action::kSend, first + to, blocks(kHas, there + to, 1)};
  return {Action::kCopy, first + from, blocks(ahead == 0 ? kGets : kPassesOn, there + from, 1)};
}

Step RailDirect::between_nodes(u32 rank, u64 index) const {
  const u32 gpus = shape().ranks_per_node, local = shape().local_of(rank);
  const u32 nodes = shape().nodes(), node = shape().node_of(rank);
  const u32 ahead = static_cast<u32>(index / (2 * kPieces)) + 1;
  const u64 place = index % (2 * kPieces), piece = place / 2;
  const bool sends = place % 2 == 0;
  const u32 other = (node + (sends ? ahead : nodes - ahead)) % nodes * gpus;
  const u32 begin = piece == 0 ? 0 : piece == 1 ? local : local + 1;
  const u32 count = piece == 0 ? local : piece == 1 ? 1 : gpus - 1 - local;
  const Part memory = !sends ? kGets : piece == 1 ? kHas : kPassesOn;
  Step step{sends ? Action::kSend : Action::kCopy, other + local,
            blocks(memory, other + begin, count)};
  if (place == 0 && gpus > 1) step.after = {0, u64{ahead + 1} * 2 * (gpus - 1)};
  return step;
}

// A piece is what goes to one node; the own node's is like the others', and goes nowhere else.
Pipeline RailDirect::pipeline() const {
  const u64 others = shape().ranks_per_node - 1;
  Stage within{.lanes = {0}, .rounds = others, .window = [](u32, u32) { return StepWindow{0, 2}; }};
  Stage between{.lanes = {1}, .window = [](u32, u32) { return StepWindow{0, 2 * kPieces}; }};
  return {.pieces = shape().nodes(), .stages = {within, between}};
}

}  // namespace verbena::collectives
