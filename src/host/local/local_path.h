// LocalPath: an adapter's part in the path between processes of one host: it publishes its device
// for peers, and finds peers for its device. Same user and network namespace only.
// Not thread-safe, but for hold_life() and end_life(); the adapter's lock guards it.
#pragma once

#include "base/time.h"
#include "host/local/process_memory.h"
#include "host/local/segment_directory.h"
#include "host/qpn_slot.h"

namespace verbena::host {

class LocalPath final : public PeerMemoryFinder {
 public:
  // nullptr where the host does not let us, or the user does not want it (VERBENA_LOCAL=off).
  // EINVAL: that is neither off nor on.
  [[nodiscard]] static Expected<std::unique_ptr<LocalPath>> open(u32 slot,
                                                                 std::span<const GIDEntry> gids);
  ~LocalPath() override { close(); }

  [[nodiscard]] LocalPorts ports() { return {&keys_, &qps_, this, &layout().shared.counts}; }

  // The helper thread's first and last act. start() waits for the first; peers find us from then
  // on.
  void hold_life() { layout().header.life.hold(); }
  void end_life() { layout().header.life.release(); }
  void start();

  // Off: we use no peer's memory, and no peer uses ours.
  void turn_on();
  void turn_off();

  // Returns when no peer is copying any more by what the device has withdrawn meanwhile.
  void wait_for_peers();

  [[nodiscard]] std::shared_ptr<PeerMemory> find(const QPAttributes& qp) override;

  void close();    // turn_off(), for good
  void abandon();  // in a child after fork(): the segment is the parent's

 private:
  LocalPath(u32 slot, OwnSegment segment, SegmentDirectory directory);
  [[nodiscard]] SegmentLayout& layout() const { return segment_.layout(); }
  [[nodiscard]] std::shared_ptr<ProcessMemory> open_peer(u32 slot);
  void wait_for_gates();
  void wait_for_gate(u32 slot, u32 look);

  static_assert(kLastSlot < AccessGates::kGates);

  u32 slot_;
  OwnSegment segment_;
  SegmentDirectory directory_;
  KeyPublisher keys_;
  QPPublisher qps_;
  std::array<std::weak_ptr<ProcessMemory>, kLastSlot + 1> peers_;  // by slot
  std::atomic<bool> enabled_{false};
  bool abandoned_ = false;
};

}  // namespace verbena::host
