// CopyQueue: begins the copies of one device to and from far memory, and finds those that have
// ended. It owns the staging memory: slots of one packet's payload. No call waits. Kinds that copy
// at once need no slot; for them every call answers "done already". The order and the errors are
// those of memory/far_memory.h.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "memory/copy_lane.h"
#include "memory/far_memory.h"

namespace verbena {

class CopyPool;

// kCompareSwap or kFetchAdd; the members are those of CopyJob.
struct CopyAtomic {
  CopyOp op = CopyOp::kFetchAdd;
  u64 compare = 0, operand = 0;
  u64 compare_mask = ~u64{0}, swap_mask = ~u64{0};
};

enum class CopyResult : u8 {
  kDone,   // or queued: the lane's ticket says when it has taken effect
  kLater,  // no slot is free, or bytes that were asked for have not arrived. Ask again
  kGone,
};

class CopyQueue {
 public:
  static constexpr u32 kSlots = 2048;
  static constexpr std::size_t kStagingBytes = std::size_t{kSlots} * kCopySlotBytes;

  CopyQueue();
  ~CopyQueue();

  // Memory of kStagingBytes for slots. To be called before the first job of a late kind.
  void use_staging(std::shared_ptr<u8[]> memory);
  [[nodiscard]] bool has_staging() const { return pool_ != nullptr; }

  // --- reads. A packet's payload may need several, one for each piece; begin_gather() precedes
  // them, and end_gather() says that all were answered. Until then a repeated attempt finds the
  // bytes that have arrived.
  void begin_gather(CopyLane* lane);
  // Reads `length` bytes, up to a slot from `at` on, at `from`, where is_here() is false; nullptr
  // gives zeros. Up to `ahead` bytes that follow are read ahead. `at` is the offset in the payload,
  // for a copy that is made at once. The bytes are valid until the next gather. If it returns
  // nullopt, `why` holds the reason.
  [[nodiscard]] std::optional<Bytes> read(const FarRegions& regions, CopyLane* lane, const u8* from,
                                          u32 length, u64 ahead, u32 at, CopyResult& why);
  void end_gather(CopyLane* lane);

  // --- writes. `from` may change afterwards. Writes to nullptr vanish. A longer write than a slot
  // becomes several; after kLater none, some or all of it may have been written: write all again.
  [[nodiscard]] CopyResult write(const FarRegions& regions, CopyLane* lane, u8* to, Bytes from);
  // The lane's begun() is its ticket.
  [[nodiscard]] CopyResult atomic(const FarRegions& regions, CopyLane* lane, u8* at,
                                  const CopyAtomic& what);
  // Begins a copy of `length` bytes between `at`, which is late far memory, and a peer's memory.
  // `op`: kToPeer or kFromPeer. kLater: no slot is free. The lane's begun() is its ticket.
  [[nodiscard]] CopyResult copy_peer(const FarRegions& regions, CopyLane* lane, CopyOp op, u8* at,
                                     u32 length, const PeerPlace& peer);
  // Returns true if the lane can take `writes` more jobs, so that no write() of that many slots
  // returns kLater. A lane that has failed takes all, and refuses them.
  [[nodiscard]] bool has_room(const CopyLane* lane, u32 writes);

  // Returns true while copies run that a lane has forgotten: of a QP that was reset or destroyed.
  [[nodiscard]] bool has_orphans();
  // Finds the jobs that have ended.
  void poll(const FarRegions& regions, CopyLane& lane);

 private:
  struct Late {
    CopyOp op;
    u32 length;
    const u8* from = nullptr;
    CopyAtomic atomic{};
    const PeerPlace* peer = nullptr;
  };
  [[nodiscard]] CopyLane::Jobs* jobs_of(CopyLane* lane);
  [[nodiscard]] CopyJob* begin_late(const FarRegions::Place& place, CopyLane::Jobs& jobs,
                                    const Late& what);
  [[nodiscard]] CopyResult begin_write(const FarRegions::Place& place, CopyLane* lane,
                                       const Late& what);
  [[nodiscard]] bool add_read(const FarRegions::Place& place, CopyLane::Jobs& jobs, u64 from,
                              u32 length);
  void read_ahead(const FarRegions::Place& place, CopyLane::Jobs& jobs, u64 from, u32 length,
                  u64 ahead);
  [[nodiscard]] std::optional<Bytes> read_late(const FarRegions::Place& place, CopyLane* lane,
                                               u64 from, u32 length, u64 ahead, CopyResult& why);

  std::shared_ptr<CopyPool> pool_;
  std::unique_ptr<std::array<u8, kCopySlotBytes>> copy_;  // of a kind that copies at once
};

}  // namespace verbena
