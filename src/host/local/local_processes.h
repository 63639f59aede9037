// LocalProcesses: the other processes of this host, by slot, as an adapter reaches them: their
// memory, and the datagram that wakes one. Same user and network namespace only. Not thread-safe;
// the adapter's lock guards it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "host/local/process_memory.h"
#include "host/local/segment_directory.h"
#include "host/progress/wake_list.h"
#include "host/sharing/process_channel.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

class LocalProcesses {
 public:
  // `directory`: nullopt where nothing but packets goes between processes.
  LocalProcesses(u32 slot, std::optional<SegmentDirectory> directory)
      : slot_(slot), directory_(std::move(directory)) {}

  [[nodiscard]] u32 slot() const { return slot_; }
  // When it is off, all data goes in packets.
  [[nodiscard]] bool is_on() const { return enabled_.load(std::memory_order_relaxed); }
  void turn(bool on) { enabled_.store(on, std::memory_order_relaxed); }

  // Returns the process that has the slot now, or nullptr if no reachable process has it.
  [[nodiscard]] std::shared_ptr<ProcessMemory> at(u32 slot);
  // Returns the process that was last found there, or nullptr if there was none or it is no longer
  // in use.
  [[nodiscard]] std::shared_ptr<ProcessMemory> known_at(u32 slot) const {
    return known_[slot].lock();
  }
  [[nodiscard]] std::shared_ptr<ProcessMemory> open(const SegmentPlace& place, u32 slot);
  // From now on, processes to wake are listed in `wakes`, which outlives this; before, each is
  // woken at once.
  void list_in(WakeList& wakes) { wakes_ = &wakes; }
  void wake(u32 slot) { wakes_ != nullptr ? wakes_->add(waker_, slot) : waker_.wake(slot); }

  // Returns nullptr if processes of this host send each other packets.
  [[nodiscard]] SegmentDirectory* directory() { return directory_ ? &*directory_ : nullptr; }
  [[nodiscard]] bool has_directory() const { return directory_.has_value(); }

  void close() { is_closed_ = true; }  // there are none from now on
  void abandon();                      // in a child after fork()
  [[nodiscard]] bool is_closed() const { return is_closed_; }

 private:
  const u32 slot_;
  std::optional<SegmentDirectory> directory_;
  std::array<std::weak_ptr<ProcessMemory>, kLastSlot + 1> known_;
  ProcessWaker waker_;
  WakeList* wakes_ = nullptr;
  std::atomic<bool> enabled_{false};
  bool is_closed_ = false;
};

}  // namespace verbena::host
