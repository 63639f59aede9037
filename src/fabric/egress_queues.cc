#include "fabric/egress_queues.h"

#include <bit>

namespace verbena::fabric {

void EgressQueues::push(u32 queue, FrameIndex index, FramePool& frames) {
  Queue& to = queues_[queue];
  if (to.head == kNoFrame)
    to.head = index;
  else
    frames[to.tail].next = index;
  to.tail = index;
  to.octets += frames[index].size_octets;
  busy_ |= bit(queue);
}

FrameIndex EgressQueues::pop_from(u32 queue, FramePool& frames) {
  Queue& from = queues_[queue];
  const FrameIndex index = from.head;
  Frame& frame = frames[index];
  from.head = frame.next;
  frame.next = kNoFrame;
  from.octets -= frame.size_octets;
  if (from.head == kNoFrame)
    busy_ &= static_cast<u16>(~bit(queue));
  else
    frames.prefetch(from.head);
  return index;
}

u64 EgressQueues::octets_of_all() const {
  u64 sum = 0;
  for (const Queue& queue : queues_) sum += queue.octets;
  return sum;
}

FrameIndex EgressQueues::pop(const QueueDiscipline& discipline, FramePool& frames) {
  const u16 candidates = ready();
  if (candidates == 0) return kNoFrame;
  const bool alone = (candidates & (candidates - 1)) == 0;
  return pop_from(alone ? static_cast<u32>(std::countr_zero(candidates))
                        : choose(candidates, discipline, frames),
                  frames);
}

// Precondition: at least two are ready.
u32 EgressQueues::choose(u16 candidates, const QueueDiscipline& discipline,
                         const FramePool& frames) {
  const u32 first = candidates & (bit(kControl) | discipline.strict);
  if (first != 0) return static_cast<u32>(std::bit_width(first)) - 1;
  while ((candidates & bit(turn_)) == 0 || deficit_[turn_] < size_at_head(turn_, frames))
    pass_turn(candidates, discipline, frames);
  deficit_[turn_] -= size_at_head(turn_, frames);
  return turn_;
}

// To the next that is ready, with its quantum. A queue that runs empty keeps no credit.
void EgressQueues::pass_turn(u16 candidates, const QueueDiscipline& discipline,
                             const FramePool& frames) {
  if ((busy_ & bit(turn_)) == 0) deficit_[turn_] = 0;
  do turn_ = static_cast<u8>((turn_ + 1) % kPriorities);
  while ((candidates & bit(turn_)) == 0);
  const u32 quantum = discipline.quantum[turn_];
  deficit_[turn_] = quantum == 0 ? size_at_head(turn_, frames) : deficit_[turn_] + quantum;
}

}  // namespace verbena::fabric
