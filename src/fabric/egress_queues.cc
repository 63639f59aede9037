#include "fabric/egress_queues.h"

#include <bit>

namespace verbena::fabric {

u64 EgressQueues::bytes_of_all() const {
  u64 sum = 0;
  for (const Queue& queue : queues_) sum += queue.bytes;
  return sum;
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
