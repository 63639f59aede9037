// SharedLink: messages between two ranks of one host, through memory that both have mapped. Each
// rank writes into its own arena and reads the other's, so neither can write into the other.
//
// The sender puts a message into the next slot of its ring and then stores the slot's number, which
// the receiver polls. Credits (Connection) keep the sender from a slot that is not read yet. A
// receiver that sleeps says so in a word of its arena; the sender then wakes it by a message of the
// queue pair.
#pragma once

#include <atomic>
#include <span>

#include "base/types.h"
#include "communicator/message.h"

namespace verbena::coll {

// Counts the receiver's sleeps: odd while it sleeps.
struct alignas(64) SleepWord {
  std::atomic<u32> count{0};
};

class SharedLink {
 public:
  // No multiple of 4 KiB, so that slots do not share the same sets of a cache.
  static constexpr u64 kSlotBytes = kSlotSize + 128;
  [[nodiscard]] static constexpr u64 ring_bytes(u32 slots) { return slots * kSlotBytes; }

  // `own`: this rank's ring to the peer; `peer`: the peer's ring to this rank, and its sleep word.
  SharedLink(u8* own, const u8* peer, const SleepWord& sleep, u32 slots)
      : own_(own), peer_(peer), sleep_(&sleep), slots_(slots) {}

  // Returns whether the peer sleeps and has to be woken.
  [[nodiscard]] bool send(const Header& header, std::span<const u8> more,
                          std::span<const u8> payload);
  // Whether the next message is there. Then message() is valid until take().
  [[nodiscard]] bool poll() const {
    return at(peer_, received_).number.load(std::memory_order_acquire) == received_ + 1;
  }
  [[nodiscard]] const Header& header() const;
  [[nodiscard]] std::span<const u8> payload() const;
  void take() { ++received_; }

 private:
  struct Slot {
    std::atomic<u32> number;  // of the message, from 1
    u32 bytes;
  };
  static constexpr u64 kBodyOffset = sizeof(Slot);
  // One cache line holds a message of one element.
  static_assert(kBodyOffset + sizeof(Header) + sizeof(u64) == 64 && kSlotBytes % 64 == 0);
  [[nodiscard]] Slot& at(u8* ring, u32 number) const {
    return *reinterpret_cast<Slot*>(ring + number % slots_ * kSlotBytes);
  }
  [[nodiscard]] const Slot& at(const u8* ring, u32 number) const {
    return *reinterpret_cast<const Slot*>(ring + number % slots_ * kSlotBytes);
  }
  [[nodiscard]] const u8* body() const {
    return peer_ + received_ % slots_ * kSlotBytes + kBodyOffset;
  }

  u8* own_;
  const u8* peer_;
  const SleepWord* sleep_;
  u32 slots_;
  u32 sent_ = 0, received_ = 0;
  u32 woken_ = 0;  // the sleep that has been ended by this rank
};

}  // namespace verbena::coll
