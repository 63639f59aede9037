#include "memory/key_table.h"

#include <utility>

#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 kInitialSlots = 16;  // 1 KiB, so that an idle device is small

}  // namespace

KeyTable::KeyTable(PRNG prng) : prng_(prng), mask_(kInitialSlots - 1), slots_(kInitialSlots) {}

KeyEntry& KeyTable::insert(const KeyEntry& entry) {
  CHECK(size_ < kMaxKeys);
  if (2 * (size_ + 1) > slots_.size()) grow();
  const u32 key = is_free(entry.key) ? entry.key : draw_key();
  KeyEntry& slot = slots_[slot_of(key)];
  slot = entry;
  slot.key = key;
  ++size_;
  return slot;
}

// Moves entries behind the hole up into it unless that would put them before their home, so that
// every probe still ends at the first free slot (Knuth, TAOCP 6.4, algorithm R).
void KeyTable::erase(u32 key) {
  u32 hole = slot_of(key);
  CHECK(slots_[hole].kind != KeyKind::kFree);
  for (u32 at = (hole + 1) & mask_; slots_[at].kind != KeyKind::kFree; at = (at + 1) & mask_) {
    const u32 from_home = (at - home_of(slots_[at].key)) & mask_;
    if (from_home < ((at - hole) & mask_)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = KeyEntry{};
  --size_;
}

u32 KeyTable::draw_variant(u32 key) {
  const u32 variants = 1u << kKeyVariantBits;
  const u32 variant = (key + 1 + static_cast<u32>(prng_.below(variants - 1))) % variants;
  return (key & ~(variants - 1)) | variant;
}

u32 KeyTable::draw_key() {
  for (;;) {  // at most a quarter of the indices are taken: 1.34 tries on average
    const u32 key = static_cast<u32>(prng_.next() >> 32);
    if (is_free(key)) return key;
  }
}

void KeyTable::grow() {
  std::vector<KeyEntry> old(2 * slots_.size());
  old.swap(slots_);
  mask_ = static_cast<u32>(slots_.size()) - 1;
  for (const KeyEntry& entry : old)
    if (entry.kind != KeyKind::kFree) slots_[slot_of(entry.key)] = entry;
}

}  // namespace verbena
