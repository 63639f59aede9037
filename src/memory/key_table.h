// KeyTable: the regions and windows of a ProtectionTable by the 24-bit index of their key; a hash
// table with open addressing. IBTA Vol 1, 10.6.3 (L_Key, R_Key), 10.6.7 (windows).
//   key: | index (24, drawn from the PRNG, never 0) | variant (8) |
// Invariant: at most half the slots are taken, so that a lookup ends after a step or two. An index
// is random already and needs no hash. An entry fills one cache line. An entry's address is valid
// until the next insert() or erase().
#pragma once

#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/types.h"
#include "memory/access.h"
#include "memory/pd_id.h"

namespace verbena {

inline constexpr u32 kKeyVariantBits = 8;
inline constexpr u32 kMaxKeys =
    1u << 22;  // a quarter of all indices, so that drawing a free one is quick

enum class KeyKind : u8 { kFree, kRegion, kNull, kWindow1, kWindow2 };

// The memory that a key gives access to: `length` bytes at `base` in this process, which SGEs and
// RETHs name [start, start + length). A bound window holds a copy of its region's translation, so
// that a lookup is one step.
struct alignas(64) KeyEntry {
  u32 key = 0;
  KeyKind kind = KeyKind::kFree;
  bool valid = false;  // a region, or a window that is bound
  PDId pd{};
  AccessFlags access{};
  u64 start = 0, length = 0;
  u64 base = 0;           // an address, or as in memory/far_memory.h
  QPN qp{};               // bound type 2 window: the QP it belongs to
  u32 region_key = 0;     // bound window
  u32 bound_windows = 0;  // region

  // Returns true if every byte of [address, address + bytes) lies inside. start + length never
  // exceeds 2^64, so an address before `start` wraps to an offset that is not below `length`.
  bool covers(u64 address, u64 bytes) const {
    const u64 offset = address - start;
    return offset <= length && bytes <= length - offset;
  }
  u64 base_of(u64 address) const { return base + (address - start); }
};
static_assert(sizeof(KeyEntry) == 64);

class KeyTable {
 public:
  explicit KeyTable(PRNG prng);

  // Returns nullptr if there is no such key (or another variant of it).
  [[nodiscard]] const KeyEntry* find(u32 key) const {
    const KeyEntry& entry = slots_[slot_of(key)];
    return entry.kind != KeyKind::kFree && entry.key == key ? &entry : nullptr;
  }
  [[nodiscard]] KeyEntry* find(u32 key) {
    return const_cast<KeyEntry*>(std::as_const(*this).find(key));
  }
  // Inserts the entry. It keeps its key if no other entry has the same index; otherwise a key is
  // drawn. Precondition: size() < kMaxKeys.
  KeyEntry& insert(const KeyEntry& entry);
  void erase(u32 key);  // precondition: the key is in the table
  // Returns another variant of `key`, never the same.
  [[nodiscard]] u32 draw_variant(u32 key);

  u32 size() const { return size_; }
  // All slots, including free ones: for rare sweeps.
  std::vector<KeyEntry>& slots() { return slots_; }
  const std::vector<KeyEntry>& slots() const { return slots_; }

 private:
  static u32 index_of(u32 key) { return key >> kKeyVariantBits; }
  u32 home_of(u32 key) const { return index_of(key) & mask_; }
  // Returns the slot of the key's index, or the free slot where it would be inserted.
  u32 slot_of(u32 key) const {
    u32 at = home_of(key);
    while (slots_[at].kind != KeyKind::kFree && index_of(slots_[at].key) != index_of(key))
      at = (at + 1) & mask_;
    return at;
  }
  bool is_free(u32 key) const {
    return index_of(key) != 0 && slots_[slot_of(key)].kind == KeyKind::kFree;
  }
  u32 draw_key();
  void grow();

  PRNG prng_;
  u32 size_ = 0;
  u32 mask_;
  std::vector<KeyEntry> slots_;
};

}  // namespace verbena
