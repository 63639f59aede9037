// Memory of the library: one arena that is registered with every rail and holds the buffers of all
// connections, of staged messages and of READs; and registrations of the program's memory.
//
// The arena is a shared file in memory, so that a software device on this host can copy between two
// of them without a system call.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "coll/error.h"
#include "communicator/verbs/rail.h"

namespace verbena::coll {

// A range of memory with a registration for each rail.
class Registration {
 public:
  // Fails where the device refuses.
  [[nodiscard]] static Expected<std::unique_ptr<Registration>> make(Rails rails, void* address,
                                                                    u64 length);
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  [[nodiscard]] bool holds(const void* address, u64 length) const {
    const u8* const begin = static_cast<const u8*>(address);
    return begin >= base_ && begin + length <= base_ + length_;
  }
  [[nodiscard]] const u8* base() const { return base_; }
  [[nodiscard]] u32 lkey(u32 rail) const { return regions_[rail]->lkey; }
  [[nodiscard]] std::array<u32, kMaxRails> rkeys() const;

 private:
  Registration() = default;
  u8* base_ = nullptr;
  u64 length_ = 0;
  std::array<ibv_mr*, kMaxRails> regions_{};
};

class Arena {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<Arena>> make(Rails rails, u64 length);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A part that was not given out before.
  [[nodiscard]] u8* take(u64 length);
  [[nodiscard]] const Registration& registration() const { return *registration_; }
  // Card: the data that another process of this host needs to map the arena.
  struct Card {
    i64 pid = 0;
    u64 address = 0, length = 0, nonce = 0;
    i32 file = -1;
    u32 reserved = 0;
  };
  [[nodiscard]] Card card() const;
  // The first bytes: a number that tells this arena from others.
  static constexpr u64 kNonceBytes = 64;

 private:
  Arena() = default;
  int file_ = -1;
  u8* base_ = nullptr;
  u64 length_ = 0, taken_ = kNonceBytes;
  std::unique_ptr<Registration> registration_{};
};

// The arena of another process of this host, mapped for reading.
class PeerArena {
 public:
  // Returns nullptr if the arena cannot be mapped: it belongs to another user or container.
  [[nodiscard]] static std::unique_ptr<PeerArena> map(const Arena::Card& card);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;

  // Returns the local address of an address of the arena's process; nullptr if it is outside the
  // arena.
  [[nodiscard]] const u8* find(u64 address, u64 bytes) const {
    const u64 offset = address - card_.address;
    return offset < card_.length && bytes <= card_.length - offset ? base_ + offset : nullptr;
  }

 private:
  PeerArena(const Arena::Card& card, const u8* base) : card_(card), base_(base) {}
  Arena::Card card_;
  const u8* base_;
};

// BufferPool: buffers of equal size, by number.
class BufferPool {
 public:
  BufferPool(u8* base, u64 bytes, u32 count) : base_(base), bytes_(bytes) {
    for (u32 i = count; i > 0; --i) free_.push_back(i - 1);
  }
  static constexpr u32 kNone = ~u32{0};
  [[nodiscard]] u32 take() {
    if (free_.empty()) return kNone;
    const u32 buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(u32 buffer) { free_.push_back(buffer); }
  [[nodiscard]] u8* at(u32 buffer) const { return base_ + buffer * bytes_; }
  [[nodiscard]] bool has_free() const { return !free_.empty(); }

 private:
  u8* base_;
  u64 bytes_;
  std::vector<u32> free_{};
};

}  // namespace verbena::coll
