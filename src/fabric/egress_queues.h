// EgressQueues: what waits at one port of a switch, by priority, and whose turn it is. IEEE 802.1Q,
// 8.6.8: strict priority (8.6.8.1) for some, then deficit round robin among the rest (Shreedhar and
// Varghese, SIGCOMM 1995), by frames or by bytes.
// Beside the eight there is one for the MAC's own pause frames, which goes first and never pauses.
#pragma once

#include <array>
#include <bit>

#include "fabric/frame_pool.h"

namespace verbena::fabric {

struct QueueDiscipline {
  u8 strict = 0;  // priorities, a bit each: these first, the highest before the others
  // Bytes that each of the others may send in its turn; 0: one frame.
  std::array<u32, kPriorities> quantum{};
};

class EgressQueues {
 public:
  static constexpr u32 kControl = kPriorities;  // the queue of pause frames

  void push(u32 queue, FrameIndex index, FramePool& frames) {
    Queue& to = queues_[queue];
    if (to.head == kNoFrame)
      to.head = index;
    else
      frames[to.tail].next = index;
    to.tail = index;
    to.bytes += frames[index].size_bytes;
    busy_ |= bit(queue);
  }
  // kNoFrame: nothing may go now.
  [[nodiscard]] FrameIndex pop(const QueueDiscipline& discipline, FramePool& frames) {
    const u16 candidates = ready();
    if (candidates == 0) return kNoFrame;
    const bool alone = (candidates & (candidates - 1)) == 0;
    return pop_from(alone ? static_cast<u32>(std::countr_zero(candidates))
                          : choose(candidates, discipline, frames),
                    frames);
  }

  [[nodiscard]] FrameIndex first(u32 queue) const { return queues_[queue].head; }
  // The first of that queue, paused or not. Precondition: it has one.
  [[nodiscard]] FrameIndex take(u32 queue, FramePool& frames) { return pop_from(queue, frames); }

  template <typename Predicate>
  [[nodiscard]] bool any_of(u32 queue, const FramePool& frames, const Predicate& matches) const {
    for (FrameIndex i = queues_[queue].head; i != kNoFrame; i = frames[i].next)
      if (matches(frames[i])) return true;
    return false;
  }

  void pause(u32 priority) { paused_ |= bit(priority); }
  void resume(u32 priority) { paused_ &= static_cast<u16>(~bit(priority)); }
  [[nodiscard]] bool is_paused(u32 priority) const { return (paused_ & bit(priority)) != 0; }
  [[nodiscard]] bool empty() const { return busy_ == 0; }
  [[nodiscard]] bool may_send() const { return ready() != 0; }
  [[nodiscard]] u32 bytes(u32 queue) const { return queues_[queue].bytes; }
  [[nodiscard]] u64 bytes_of_all() const;

 private:
  struct Queue {
    FrameIndex head = kNoFrame, tail = kNoFrame;
    u32 bytes = 0;
  };
  static constexpr u16 bit(u32 queue) { return static_cast<u16>(1u << queue); }
  u16 ready() const { return busy_ & static_cast<u16>(~paused_); }
  u32 choose(u16 ready, const QueueDiscipline& discipline, const FramePool& frames);
  void pass_turn(u16 candidates, const QueueDiscipline& discipline, const FramePool& frames);
  u32 size_at_head(u32 queue, const FramePool& frames) const {
    return frames[queues_[queue].head].size_bytes;
  }
  FrameIndex pop_from(u32 queue, FramePool& frames) {
    Queue& from = queues_[queue];
    const FrameIndex index = from.head;
    Frame& frame = frames[index];
    from.head = frame.next;
    frame.next = kNoFrame;
    from.bytes -= frame.size_bytes;
    if (from.head == kNoFrame)
      busy_ &= static_cast<u16>(~bit(queue));
    else
      frames.prefetch(from.head);
    return index;
  }

  u16 busy_ = 0;  // not empty
  u16 paused_ = 0;
  u8 turn_ = 0;  // of the round robin: the priority that sent last
  std::array<Queue, kPriorities + 1> queues_;
  std::array<u32, kPriorities> deficit_{};  // bytes left of a turn
};

}  // namespace verbena::fabric
