// LocalPath: an adapter's part in direct memory access between processes of one host. It publishes
// its device for processes that import from it, and finds those that it imports from. Unless the
// user disables it (VERBENA_LOCAL=off), it does the same for peers, so that both need no packets.
// Same user and network namespace only.
// Not thread-safe, but for hold_life() and end_life(); the adapter's lock guards it.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "host/local/common_memory.h"
#include "host/local/local_processes.h"
#include "host/local/outgoing_rings.h"
#include "host/local/process_memory.h"
#include "host/local/segment_directory.h"
#include "host/local/stream_directory.h"
#include "host/sharing/process_channel.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

// By VERBENA_SHARE and VERBENA_HUGE.
struct LocalChoices {
  Sharing sharing = Sharing::kAsFound;
  bool gives_huge_pages = true;
};

class LocalPath final : public PeerMemoryFinder {
 public:
  // Returns nullptr if the host does not allow it. EINVAL: a variable is neither on nor off.
  [[nodiscard]] static Expected<std::unique_ptr<LocalPath>> open(u32 slot,
                                                                 std::span<const GIDEntry> gids);
  ~LocalPath() override { close(); }

  [[nodiscard]] LocalPorts ports();

  // The helper thread's first and last act. start() waits for the first; peers find us from then
  // on.
  void hold_life() { layout().header.life.hold(); }
  void end_life() { layout().header.life.release(); }
  void start();

  // When it is off, all data between us and our peers goes in packets. Imported regions are
  // unaffected.
  void turn_on();
  void turn_off();

  // Returns when no peer still copies by keys that the device has withdrawn meanwhile.
  void wait_for_peers() {
    const bool keys = keys_.take_withdrawn(), qps = qps_.take_withdrawn();
    if (keys || qps) wait_for_gates();
    if (keys_.take_unshared()) tell_mappers();
  }

  // Prepares memory that is about to be registered for access by peers. Thread-safe.
  [[nodiscard]] std::optional<CommonMemory> common_memory(std::span<const u8> memory) const;

  [[nodiscard]] std::shared_ptr<PeerMemory> find(const QPAttributes& qp) override;
  // The QP has this end of a TCP connection: so a peer at its other end finds it.
  void announce(const TCPTuple& end, QPN qpn);

  // place() returns where others find the exports of the device; exporter_at() returns the exporter
  // at such a place. ESRCH: the process has ended; EXDEV: it is in another network namespace;
  // otherwise the errno with which the kernel refuses us its memory.
  [[nodiscard]] ExportPlace place() const;
  [[nodiscard]] Expected<std::shared_ptr<ProcessMemory>> exporter_at(const ExportPlace& place);

  // --- frames and packets through shared memory: links/local_link.h
  [[nodiscard]] OutgoingRings& outgoing() { return outgoing_; }
  [[nodiscard]] LocalProcesses& processes() { return processes_; }
  // A peer rang, and there was no frame: it has withdrawn memory that we have mapped.
  void on_withdrawn_by(u32 slot);
  // For an adapter that receives no frames through rings: each bell wakes it, and means a
  // withdrawal.
  void sleep_until_withdrawn();
  void on_woken();
  [[nodiscard]] Doorbells& doorbells() const { return layout().shared.doorbells; }
  // Returns the ring of frames from a peer to us, or nullopt if it has claimed none.
  [[nodiscard]] std::optional<u32> ring_from(u32 slot) const {
    return layout().shared.rings.find(slot);
  }
  [[nodiscard]] Expected<Mapping> map_own_ring(u32 ring) const {
    return map_ring(segment_.fd(), ring);
  }

  void close();    // turn_off(), for good
  void abandon();  // in a child after fork(): the segment is the parent's

 private:
  LocalPath(u32 slot, OwnSegment segment, std::optional<SegmentDirectory> directory,
            const LocalChoices& choices);
  [[nodiscard]] SegmentLayout& layout() const { return segment_.layout(); }
  [[nodiscard]] std::shared_ptr<PeerMemory> find_stream(const QPAttributes& qp);
  void wait_for_gates();
  void wait_for_gates(AccessGates& gates);
  void wait_for_gate(AccessGates& gates, u32 slot, u32 look);
  void tell_mappers();

  static_assert(kLastSlot < AccessGates::kGates);

  LocalProcesses processes_;
  OwnSegment segment_;
  std::optional<StreamDirectory> streams_;  // opened with the first stream
  const LocalChoices choices_;
  KeyPublisher keys_;
  QPPublisher qps_;
  std::vector<std::pair<u64, std::weak_ptr<ProcessMemory>>> exporters_;  // by nonce
  OutgoingRings outgoing_{processes_};
};

}  // namespace verbena::host
