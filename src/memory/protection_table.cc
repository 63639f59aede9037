#include "memory/protection_table.h"

#include <unordered_map>

#include "base/check.h"
#include "memory/key_table.h"
#include "memory/published_keys.h"
#include "memory/write_log.h"

namespace verbena {
namespace {

constexpr u64 kNoByteLimit = ~u64{0};
constexpr u64 kEveryAddress = ~u64{0};             // as a length: every address but the last
constexpr u64 kWholeProcess = kEveryAddress >> 1;  // every address of a program, and no other's

bool is_window(const KeyEntry& entry) {
  return entry.kind == KeyKind::kWindow1 || entry.kind == KeyKind::kWindow2;
}

bool is_region(const KeyEntry& entry) {
  return entry.kind == KeyKind::kRegion || entry.kind == KeyKind::kNull;
}

bool is_far_region(const KeyEntry& entry) {
  return entry.kind == KeyKind::kRegion && FarRegions::is_far(entry.base);
}

// Returns true if the last byte of [first, first + length) lies before `first`.
bool wraps(u64 first, u64 length) { return length != 0 && first + (length - 1) < first; }

// A remote write needs the region's local right. IBTA 10.6.3.1; C10-74 for windows.
bool writable_as(AccessFlags wanted, AccessFlags region) {
  const bool writes = wanted.has(Access::kRemoteWrite) || wanted.has(Access::kRemoteAtomic);
  return !writes || region.has(Access::kLocalWrite);
}

bool is_of_this_process(u64 base, u64 length) {
  return base <= kWholeProcess && length <= kWholeProcess - base;
}

bool legal_region(const KeyEntry& region) {
  return writable_as(region.access, region.access) &&
         !region.access.has(Access::kFlushPersistent) && !wraps(region.start, region.length) &&
         is_of_this_process(region.base, region.length);
}

bool legal_far_region(const KeyEntry& region) {
  return writable_as(region.access, region.access) &&
         !region.access.has(Access::kFlushPersistent) && !wraps(region.start, region.length) &&
         region.length <= FarRegions::kMaxLength;
}

void translate(KeyEntry& region, u8* base, u64 length, u64 iova) {
  region.base = reinterpret_cast<u64>(base);
  region.length = length;
  region.start = iova;
}

void apply(KeyEntry& region, const ProtectionTable::Rereg& change) {
  if (change.translation) translate(region, change.base, change.length, change.iova);
  if (change.access != nullptr) region.access = *change.access;
  if (change.pd != nullptr) region.pd = *change.pd;
  if (region.access.has(Access::kZeroBased)) region.start = 0;
}

MRKeys keys_of(const KeyEntry& region) { return {LKey{region.key}, RKey{region.key}}; }

// Local write means nothing for a window, which is never used locally; programs set it, and cards
// accept it.
constexpr AccessFlags kWindowRights = Access::kRemoteWrite | Access::kRemoteRead |
                                      Access::kRemoteAtomic | Access::kZeroBased |
                                      Access::kLocalWrite;

constexpr AccessFlags kNullRights = Access::kLocalWrite | Access::kRemoteWrite;

// Checks the rules about the window itself. IBTA 10.6.7.2.2, o10-36.2.2, o10-37.2.30, o10-37.2.40.
bool window_takes(const KeyEntry& window, u32 new_key, const MWBind& bind) {
  if ((window.key >> kKeyVariantBits) != (new_key >> kKeyVariantBits)) return false;
  if ((bind.access | kWindowRights) != kWindowRights) return false;
  if (window.kind == KeyKind::kWindow1) return !bind.access.has(Access::kZeroBased);
  return !window.valid && bind.length != 0;
}

// Checks the rules about the region below. IBTA 10.6.7.2.1: C10-72 .. C10-75.
bool region_gives(const KeyEntry* region, PDId pd, const MWBind& bind) {
  return region != nullptr && region->kind == KeyKind::kRegion && region->pd == pd &&
         region->access.has(Access::kMWBind) && writable_as(bind.access, region->access) &&
         region->covers(bind.address, bind.length);
}

Resolved resolve(const KeyEntry& entry, u64 address, u64 length, Access need) {
  if (!entry.access.has(need)) return {nullptr, MemoryFault::kAccess};
  if (!entry.covers(address, length)) return {nullptr, MemoryFault::kBounds};
  if (entry.kind == KeyKind::kNull) return {};
  u8* const data = reinterpret_cast<u8*>(entry.base_of(address));
  return {data, data != nullptr ? MemoryFault::kNone : MemoryFault::kGone};
}

}  // namespace

struct ProtectionTable::Impl {
  Impl(u32 most_regions, u32 most_windows, u32 most, PRNG prng)
      : max_regions(most_regions), max_windows(most_windows), max_entries(most), keys(prng) {}

  [[nodiscard]] KeyEntry* find_region(LKey key) {
    KeyEntry* entry = keys.find(key.value);
    return entry != nullptr && entry->kind == KeyKind::kRegion ? entry : nullptr;
  }
  [[nodiscard]] KeyEntry* find_window(RKey key) {
    KeyEntry* entry = keys.find(key.value);
    return entry != nullptr && is_window(*entry) ? entry : nullptr;
  }
  // Returns the key's entry for a peer; nullptr if that PD has none or, for a type 2 window, that
  // QP.
  [[nodiscard]] const KeyEntry* find_remote(PDId pd, QPN qp, RKey key) const {
    const KeyEntry* entry = keys.find(key.value);
    if (entry == nullptr || !entry->valid || entry->pd != pd) return nullptr;
    return entry->kind == KeyKind::kWindow2 && entry->qp != qp ? nullptr : entry;
  }
  [[nodiscard]] bool has_room_for(const KeyEntry& entry) const {
    const bool has_kind = is_window(entry) ? windows < max_windows : regions() < max_regions;
    return has_kind && keys.size() < max_entries;
  }
  [[nodiscard]] u32 regions() const { return keys.size() - windows; }
  // Returns nullptr if the table is full.
  [[nodiscard]] const KeyEntry* insert(const KeyEntry& entry) {
    if (!has_room_for(entry) || !has_bytes_for(entry, 0)) return nullptr;
    registered_bytes += bytes_of(entry);
    ++pd_uses[entry.pd];
    const KeyEntry& inserted = keys.insert(entry);
    if (is_window(entry)) ++windows;
    publish(inserted);
    return &inserted;
  }
  [[nodiscard]] Result<MRKeys> insert_far(const KeyEntry& wanted, std::shared_ptr<FarMemory> memory,
                                          u32 skew) {
    KeyEntry region = wanted;
    if (region.length > FarRegions::kMaxLength || wraps(region.start, region.length))
      return failure(Status::kInvalidArgument);
    const std::optional<u64> base = far.add(std::move(memory), skew);
    if (!base) return failure(Status::kNoMemory);
    region.base = *base;
    const KeyEntry* const inserted = insert(region);
    if (inserted != nullptr) return keys_of(*inserted);
    far.remove(*base);
    return failure(Status::kNoMemory);
  }
  void erase(const KeyEntry& entry) {
    withdraw(entry);
    if (is_window(entry)) --windows;
    registered_bytes -= bytes_of(entry);
    if (is_far_region(entry)) far.remove(entry.base);
    release_pd(entry.pd);
    keys.erase(entry.key);
  }
  // A write log records only accesses through this process. With a log, regions are therefore
  // published for importers only.
  void publish(const KeyEntry& entry) {
    if (publisher == nullptr || entry.kind != KeyKind::kRegion) return;
    if (is_far_region(entry)) return publish_far(entry);
    publisher->publish(entry, write_log == nullptr ? KeyPublisher::Audience::kAll
                                                   : KeyPublisher::Audience::kImporters);
  }
  // For peers that have the same driver. The log records no access to far memory.
  void publish_far(const KeyEntry& entry) {
    const FarHandle* const handle = far.memory_at(entry.base).handle();
    if (handle == nullptr || write_log != nullptr) return;
    publisher->publish(entry, KeyPublisher::Audience::kAll);
    publisher->share(entry.key, *handle);
  }
  void withdraw(const KeyEntry& entry) {
    if (publisher != nullptr && entry.kind == KeyKind::kRegion) publisher->withdraw(entry.key);
  }
  void release_pd(PDId pd) {
    const auto use = pd_uses.find(pd);
    if (--use->second == 0) pd_uses.erase(use);
  }
  void bind(KeyEntry& window, KeyEntry& region, QPN qp, const MWBind& how) {
    window.valid = true;
    window.access = how.access;
    window.start = how.access.has(Access::kZeroBased) ? 0 : how.address;
    window.length = how.length;
    window.base = region.base_of(how.address);
    window.region_key = region.key;
    ++region.bound_windows;
    if (window.kind != KeyKind::kWindow2) return;
    window.qp = qp;
    ++bound_type2;
  }
  void unbind(KeyEntry& window) {
    if (!window.valid) return;
    window.valid = false;
    --keys.find(window.region_key)->bound_windows;
    if (window.kind == KeyKind::kWindow2) --bound_type2;
  }

  // The bytes that count against the limit. Without a limit the sum may wrap around 2^64.
  [[nodiscard]] static u64 bytes_of(const KeyEntry& entry) {
    return entry.kind == KeyKind::kRegion ? entry.length : 0;
  }
  // Returns whether the limit has room for the entry once `released` bytes are given back.
  [[nodiscard]] bool has_bytes_for(const KeyEntry& entry, u64 released) const {
    if (most_bytes == kNoByteLimit) return true;
    return bytes_of(entry) <= most_bytes - (registered_bytes - released);
  }

  const u32 max_regions, max_windows, max_entries;
  u64 most_bytes = kNoByteLimit;
  u64 registered_bytes = 0;
  KeyTable keys;
  std::unordered_map<PDId, u32> pd_uses;  // live entries; none for a PD that has none
  u32 windows = 0, bound_type2 = 0;
  FarRegions far;
  CopyQueue copies;
  std::unique_ptr<WriteLog> write_log;
  KeyPublisher* publisher = nullptr;
};

ProtectionTable::ProtectionTable(u32 max_entries, PRNG prng)
    : impl_(std::make_unique<Impl>(max_entries, max_entries, max_entries, prng)) {
  CHECK(max_entries <= kMaxKeys);
}

ProtectionTable::ProtectionTable(u32 max_regions, u32 max_windows, PRNG prng)
    : impl_(std::make_unique<Impl>(max_regions, max_windows, max_regions + max_windows, prng)) {
  CHECK(u64{max_regions} + max_windows <= kMaxKeys);
}

ProtectionTable::~ProtectionTable() = default;

void ProtectionTable::limit_registered_bytes(u64 most) {
  CHECK(size() == 0);
  impl_->most_bytes = most;
}

u64 ProtectionTable::registered_bytes() const { return impl_->registered_bytes; }

void ProtectionTable::publish_to(KeyPublisher& publisher) { impl_->publisher = &publisher; }

Result<MRKeys> ProtectionTable::register_mr(PDId pd, u8* base, u64 length, u64 iova,
                                            AccessFlags access) {
  KeyEntry region;
  region.kind = KeyKind::kRegion;
  region.valid = true;
  apply(region, {.pd = &pd,
                 .access = &access,
                 .translation = true,
                 .base = base,
                 .length = length,
                 .iova = iova});
  if (!legal_region(region)) return failure(Status::kInvalidArgument);
  const KeyEntry* inserted = impl_->insert(region);
  if (inserted == nullptr) return failure(Status::kNoMemory);
  return keys_of(*inserted);
}

Result<MRKeys> ProtectionTable::register_whole_process(PDId pd, AccessFlags access) {
  return register_mr(pd, nullptr, kWholeProcess, 0, access);
}

Result<MRKeys> ProtectionTable::register_null(PDId pd, AccessFlags access) {
  if ((access | kNullRights) != kNullRights || !writable_as(access, access))
    return failure(Status::kInvalidArgument);
  KeyEntry region;
  region.kind = KeyKind::kNull;
  region.valid = access.has(Access::kRemoteWrite);  // peers cannot find the others
  region.pd = pd;
  region.access = access;
  region.length = kEveryAddress;
  const KeyEntry* inserted = impl_->insert(region);
  if (inserted == nullptr) return failure(Status::kNoMemory);
  return keys_of(*inserted);
}

Result<MRKeys> ProtectionTable::import_mr(PDId pd, std::shared_ptr<ImportedMemory> memory,
                                          u64 length, u64 iova, AccessFlags access, LKey key) {
  KeyEntry region;
  region.key = key.value;
  region.kind = KeyKind::kRegion;
  region.valid = true;
  region.pd = pd;
  region.access = AccessFlags(access.bits & ~static_cast<u32>(Access::kRemoteAtomic));
  region.start = iova;
  region.length = length;
  return impl_->insert_far(region, std::move(memory), 0);
}

Result<MRKeys> ProtectionTable::register_far(PDId pd, std::shared_ptr<FarMemory> memory, u32 skew,
                                             u64 length, u64 iova, AccessFlags access) {
  KeyEntry region;
  region.kind = KeyKind::kRegion;
  region.valid = true;
  region.pd = pd;
  region.access = access;
  region.start = access.has(Access::kZeroBased) ? 0 : iova;
  region.length = length;
  if (!writable_as(access, access) || access.has(Access::kFlushPersistent))
    return failure(Status::kInvalidArgument);
  return impl_->insert_far(region, std::move(memory), skew);
}

void ProtectionTable::share(LKey key, const SharedSpan& span) {
  const KeyEntry* const region = impl_->find_region(key);
  if (region != nullptr && impl_->publisher != nullptr) impl_->publisher->share(key.value, span);
}

Status ProtectionTable::deregister_mr(LKey key) {
  const KeyEntry* region = impl_->keys.find(key.value);
  if (region == nullptr || is_window(*region)) return Status::kNotFound;
  if (region->bound_windows != 0) return Status::kBusy;
  impl_->erase(*region);
  return Status::kOk;
}

// A far region that is left gives its place back. The driver waits for the copies that still run.
Result<MRKeys> ProtectionTable::reregister_mr(LKey key, const Rereg& change) {
  KeyEntry* region = impl_->find_region(key);
  if (region == nullptr) return failure(Status::kNotFound);
  if (region->bound_windows != 0) return failure(Status::kBusy);
  KeyEntry changed = *region;
  apply(changed, change);
  const bool is_far = change.translation ? change.far != nullptr : is_far_region(*region);
  if (!(is_far ? legal_far_region(changed) : legal_region(changed))) {
    impl_->erase(*region);
    return failure(Status::kInvalidArgument);
  }
  const u64 released = Impl::bytes_of(*region);
  if (!impl_->has_bytes_for(changed, released)) return failure(Status::kNoMemory);
  if (change.translation && is_far) {
    const std::optional<u64> base = impl_->far.add(change.far, change.skew);
    if (!base) return failure(Status::kNoMemory);
    changed.base = *base;
  }
  impl_->registered_bytes += Impl::bytes_of(changed) - released;
  if (change.translation) changed.key = impl_->keys.draw_variant(region->key);
  ++impl_->pd_uses[changed.pd];
  impl_->release_pd(region->pd);
  impl_->withdraw(*region);
  if (change.translation && is_far_region(*region)) impl_->far.remove(region->base);
  *region = changed;
  impl_->publish(*region);
  return keys_of(*region);
}

Result<RKey> ProtectionTable::allocate_mw(PDId pd, MWType type) {
  KeyEntry window;
  window.kind = type == MWType::k1 ? KeyKind::kWindow1 : KeyKind::kWindow2;
  window.pd = pd;
  const KeyEntry* inserted = impl_->insert(window);
  if (inserted == nullptr) return failure(Status::kNoMemory);
  return RKey{inserted->key};
}

Status ProtectionTable::deallocate_mw(RKey key) {
  KeyEntry* window = impl_->find_window(key);
  if (window == nullptr) return Status::kNotFound;
  impl_->unbind(*window);
  impl_->erase(*window);
  return Status::kOk;
}

Result<RKey> ProtectionTable::bind_mw(PDId pd, QPN qp, RKey mw, RKey new_key, const MWBind& bind) {
  KeyEntry* window = impl_->find_window(mw);
  if (window == nullptr || window->pd != pd || !window_takes(*window, new_key.value, bind))
    return failure(Status::kInvalidArgument);
  KeyEntry* region = impl_->find_region(bind.mr_l_key);
  if (bind.length != 0 && !region_gives(region, pd, bind)) return failure(Status::kInvalidArgument);

  impl_->unbind(*window);
  const bool draw = window->kind == KeyKind::kWindow1 && new_key == mw;
  window->key = draw ? impl_->keys.draw_variant(mw.value) : new_key.value;
  if (bind.length != 0) impl_->bind(*window, *region, qp, bind);
  return RKey{window->key};
}

MemoryFault ProtectionTable::invalidate(PDId pd, QPN qp, RKey key) {
  KeyEntry* entry = impl_->keys.find(key.value);
  if (entry == nullptr || !entry->valid || entry->pd != pd) return MemoryFault::kBadKey;
  if (entry->kind != KeyKind::kWindow2 || entry->qp != qp) return MemoryFault::kAccess;
  impl_->unbind(*entry);
  return MemoryFault::kNone;
}

void ProtectionTable::invalidate_windows_of(QPN qp) {
  if (impl_->bound_type2 == 0) return;
  for (KeyEntry& entry : impl_->keys.slots())
    if (entry.kind == KeyKind::kWindow2 && entry.qp == qp) impl_->unbind(entry);
}

Resolved ProtectionTable::local(PDId pd, LKey key, u64 address, u64 length, Access need) const {
  if (length == 0) return {};
  const KeyEntry* entry = std::as_const(impl_->keys).find(key.value);
  if (entry == nullptr || is_window(*entry) || entry->pd != pd)
    return {nullptr, MemoryFault::kBadKey};
  return resolve(*entry, address, length, need);
}

Resolved ProtectionTable::remote(PDId pd, QPN qp, RKey key, u64 address, u64 length,
                                 Access need) const {
  if (length == 0) return {};
  const KeyEntry* entry = std::as_const(*impl_).find_remote(pd, qp, key);
  if (entry == nullptr) return {nullptr, MemoryFault::kBadKey};
  const Resolved at = resolve(*entry, address, length, need);
  if (impl_->write_log != nullptr && is_here(at.data) && need != Access::kRemoteRead)
    impl_->write_log->add({at.data, length});
  return at;
}

MemoryFault ProtectionTable::remote_whole(PDId pd, QPN qp, RKey key, Access need) const {
  const KeyEntry* entry = std::as_const(*impl_).find_remote(pd, qp, key);
  if (entry == nullptr) return MemoryFault::kBadKey;
  return entry->access.has(need) ? MemoryFault::kNone : MemoryFault::kAccess;
}

std::optional<KeyInfo> ProtectionTable::describe(u32 key) const {
  const KeyEntry* entry = std::as_const(impl_->keys).find(key);
  if (entry == nullptr) return std::nullopt;
  return KeyInfo{.pd = entry->pd,
                 .address = entry->start,
                 .length = entry->length,
                 .access = entry->access,
                 .is_window = is_window(*entry),
                 .is_bound = !is_window(*entry) || entry->valid,
                 .qp = entry->qp};
}

u32 ProtectionTable::size() const { return impl_->keys.size(); }

bool ProtectionTable::pd_in_use(PDId pd) const { return impl_->pd_uses.contains(pd); }

u32 ProtectionTable::uses_of(PDId pd) const {
  const auto use = impl_->pd_uses.find(pd);
  return use != impl_->pd_uses.end() ? use->second : 0;
}

u32 ProtectionTable::region_count() const { return impl_->regions(); }

std::size_t ProtectionTable::list_regions(u32& place, std::span<LKey> keys) const {
  const std::vector<KeyEntry>& slots = impl_->keys.slots();
  std::size_t count = 0;
  for (; place < slots.size() && count < keys.size(); ++place)
    if (is_region(slots[place])) keys[count++] = LKey{slots[place].key};
  while (place < slots.size() && !is_region(slots[place])) ++place;
  if (place >= slots.size()) place = kNoPlace;
  return count;
}

const FarRegions& ProtectionTable::far() const { return impl_->far; }

CopyQueue& ProtectionTable::copies() const { return impl_->copies; }

void ProtectionTable::keep_write_log() {
  if (impl_->write_log == nullptr) impl_->write_log = std::make_unique<WriteLog>();
}

const WriteLog* ProtectionTable::write_log() const { return impl_->write_log.get(); }

}  // namespace verbena
