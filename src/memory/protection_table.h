// ProtectionTable: every L_Key and R_Key of one device, and the checks behind them.
// IBTA Vol 1, 10.6 (memory management), 10.6.7 (memory windows), 9.7.4.1.5 (R_Key validation).
//
// Invariant: no pointer leaves this table unless the key is live, belongs to the PD (and, for a
// type 2 window, to the QP), every byte lies inside the region, and the right is granted. Keys are
// unpredictable: the index part is drawn from a PRNG, the variant part too. Not thread-safe; one
// owner (the device). No allocation in lookups.
#pragma once

#include <memory>
#include <optional>

#include "base/prng.h"
#include "base/status.h"
#include "base/types.h"
#include "memory/access.h"
#include "memory/copy_queue.h"
#include "memory/imported_memory.h"
#include "memory/pd_id.h"
#include "memory/sge.h"

namespace verbena {

class WriteLog;
class KeyPublisher;
struct SharedSpan;

enum class MemoryFault : u8 {
  kNone,
  kBadKey,     // no such key, invalidated, or another PD (the network is not told which)
  kBounds,     // a byte outside the region
  kAccess,     // the right is not granted
  kGone,       // the region covers it, but the memory is not mapped (memory/touch.h)
  kProtected,  // the memory is mapped, but its protection does not allow the access
  kLater,      // no fault: a copy of far memory cannot begin or has not ended. Ask again
};

// The place of the bytes, or the fault. Without a fault, nullptr is in the null region (or nothing
// was asked for): reads give zeros and writes vanish. Call is_here() before you access the bytes.
struct Resolved {
  u8* data = nullptr;
  MemoryFault fault = MemoryFault::kNone;
  explicit operator bool() const { return fault == MemoryFault::kNone; }
};

struct MRKeys {
  LKey l_key{};
  RKey r_key{};  // same number as l_key
};

// The properties of a key that statistics and explanations show.
struct KeyInfo {
  PDId pd{};
  u64 address = 0, length = 0;  // that SGEs and RETHs may name
  AccessFlags access{};
  bool is_window = false;
  bool is_bound = true;  // an unbound window gives access to nothing
  QPN qp{};              // the QP through which a type 2 window is bound
};

enum class MWType : u8 { k1 = 1, k2 = 2 };

struct MWBind {  // the properties that a bind gives a window. IBTA 10.6.7.2
  LKey mr_l_key{};
  u64 address = 0;  // in the region's address space; 0-based within the window when zero_based
  u64 length = 0;
  AccessFlags access{};
};

class ProtectionTable {
 public:
  // `max_entries`: regions and windows together, at most kMaxKeys (key_table.h). `prng` draws the
  // keys. The table grows with its entries: an empty table is 1 KiB.
  ProtectionTable(u32 max_entries, PRNG prng);
  // The same with a limit for each kind; their sum is at most kMaxKeys.
  ProtectionTable(u32 max_regions, u32 max_windows, PRNG prng);
  ~ProtectionTable();
  ProtectionTable(const ProtectionTable&) = delete;
  ProtectionTable& operator=(const ProtectionTable&) = delete;

  // Publishes the keys that peers may use to `publisher`, which outlives this. To be called before
  // the first registration.
  void publish_to(KeyPublisher& publisher);

  // Limits the sum of the lengths of all regions, of far and imported memory too, to `most` bytes.
  // ~0, the default, is no limit. To be called before the first registration.
  void limit_registered_bytes(u64 most);
  [[nodiscard]] u64 registered_bytes() const;

  // --- regions. `base` is this process's address of the first byte; `iova` is the address that
  // SGEs and RETHs use for it. kZeroBased means iova 0. kRemoteWrite and kRemoteAtomic need
  // kLocalWrite, and iova + length must not wrap around 2^64; otherwise kInvalidArgument. length 0
  // is allowed. kNoMemory: no more entries, or no more bytes.
  [[nodiscard]] Result<MRKeys> register_mr(PDId pd, u8* base, u64 length, u64 iova,
                                           AccessFlags access);
  // A region covering the whole address space of the process, addressed by plain pointers
  // (implicit ODP: addr 0, length SIZE_MAX).
  [[nodiscard]] Result<MRKeys> register_whole_process(PDId pd, AccessFlags access);
  // A region of every address whose reads give zeros and whose writes vanish. It cannot be changed,
  // and no window can be bound to it. It is for local access only, as ibv_alloc_null_mr(3) says, or
  // has kRemoteWrite: peers may write there too, as in the memory of a simulated host.
  // kInvalidArgument: any other right.
  [[nodiscard]] Result<MRKeys> register_null(PDId pd, AccessFlags access = Access::kLocalWrite);
  // A region of another process's memory, with that process's key if it is free here. It never has
  // the atomic right, because a copy is not atomic. kInvalidArgument also if it is longer than
  // kMaxLength.
  [[nodiscard]] Result<MRKeys> import_mr(PDId pd, std::shared_ptr<ImportedMemory> memory,
                                         u64 length, u64 iova, AccessFlags access, LKey key);
  // A region of far memory of a kind that a driver provides, under a key of its own. `skew`: as for
  // FarRegions::add(). A late kind needs copies().has_staging().
  [[nodiscard]] Result<MRKeys> register_far(PDId pd, std::shared_ptr<FarMemory> memory, u32 skew,
                                            u64 length, u64 iova, AccessFlags access);
  // Allows peers on this host to map these pages of the region, which lie in a file, as long as its
  // key stays the same. Does nothing if keys are not published.
  void share(LKey key, const SharedSpan& span);
  // Returns kBusy while a window is bound to it, or kNotFound.
  [[nodiscard]] Status deregister_mr(LKey key);
  // Changes the given properties in place (IBTA 11.2.8.5 Reregister). Draws a new variant of the
  // key if the change names other memory; otherwise keeps it, as cards do.
  // After kInvalidArgument the region is gone, as the man page of ibv_rereg_mr says for
  // IBV_REREG_MR_ERR_CMD. After kBusy (a window is bound), kNotFound and kNoMemory (no more bytes)
  // nothing has changed.
  struct Rereg {
    const PDId* pd = nullptr;
    const AccessFlags* access = nullptr;
    bool translation = false;
    u8* base = nullptr;  // of memory of this process; `far`: of far memory, with `skew` as above
    std::shared_ptr<FarMemory> far = nullptr;
    u32 skew = 0;
    u64 length = 0, iova = 0;
  };
  [[nodiscard]] Result<MRKeys> reregister_mr(LKey key, const Rereg& change);

  // --- windows
  [[nodiscard]] Result<RKey> allocate_mw(PDId pd, MWType type);
  [[nodiscard]] Status deallocate_mw(RKey key);
  // Binds a window and returns the live key. Only the low 8 bits of `new_key` may differ from the
  // window's key: the variant that the caller has chosen. A type 1 window always gets another
  // variant: a drawn one if the caller has not chosen. IBTA 10.6.7.2.1 - 10.6.7.2.3.
  // Type 1: a bind replaces the one before; length 0 unbinds; kZeroBased is refused.
  // Type 2: belongs to `qp` until it is invalidated; it must be unbound before and length above 0.
  // All refusals are kInvalidArgument and change nothing.
  [[nodiscard]] Result<RKey> bind_mw(PDId pd, QPN qp, RKey mw, RKey new_key, const MWBind& bind);
  // LOCAL INVALIDATE and SEND with Invalidate: a type 2 window bound through `qp`. Returns kBadKey
  // for no live key of this PD, kAccess for a region, a type 1 window or another QP's window. The
  // key is dead until a bind gives the window a new one. IBTA 9.4.1.1.3, 10.6.7.2.4
  [[nodiscard]] MemoryFault invalidate(PDId pd, QPN qp, RKey key);
  // Unbinds the type 2 windows of a QP that is destroyed, so that a later QP of the same number
  // does not get them. Sweeps the table only if any type 2 window is bound.
  void invalidate_windows_of(QPN qp);

  // --- checks, on the data path. Length 0 is always granted, key unchecked (IBTA 9.7.4.1.5).
  // `need` is kLocalRead or kLocalWrite.
  [[nodiscard]] Resolved local(PDId pd, LKey key, u64 address, u64 length, Access need) const;
  // `need` is kRemoteRead, kRemoteWrite, kRemoteAtomic or one of the FLUSH rights.
  [[nodiscard]] Resolved remote(PDId pd, QPN qp, RKey key, u64 address, u64 length,
                                Access need) const;
  // The same for the whole region or window that the key names, whatever its length.
  [[nodiscard]] MemoryFault remote_whole(PDId pd, QPN qp, RKey key, Access need) const;

  [[nodiscard]] const FarRegions& far() const;
  [[nodiscard]] CopyQueue& copies() const;

  // Returns nullopt if there is no such key. For explanations; no check uses it.
  [[nodiscard]] std::optional<KeyInfo> describe(u32 key) const;

  [[nodiscard]] u32 size() const;               // live regions and windows
  [[nodiscard]] bool pd_in_use(PDId pd) const;  // any region or window left in it
  [[nodiscard]] u32 uses_of(PDId pd) const;     // regions and windows left in it
  [[nodiscard]] u32 region_count() const;
  // Fills `keys` with the keys of regions from `place` on, and returns how many they are. `place`
  // is then where the rest begins; kNoPlace: there is no more. A registration between two calls may
  // move keys. For statistics.
  static constexpr u32 kNoPlace = ~u32{0};
  [[nodiscard]] std::size_t list_regions(u32& place, std::span<LKey> keys) const;

  // From this call on, accesses that remote() grants, except reads, are logged.
  void keep_write_log();
  [[nodiscard]] const WriteLog* write_log() const;  // nullptr: none is kept

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena
