// A ProtectionTable against a plain map of live keys, with random operations and random bounds.
#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "memory/keys_for_test.h"
#include "memory/protection_table.h"

namespace verbena {
namespace {

using test::kOtherPD;
using test::kPD;
using test::status_of;

constexpr u64 kLength = 4096;

// One live key in the model: plain copies, bounds by first and last byte.
struct ModelKey {
  enum class Kind { kRegion, kWindow1, kWindow2 } kind = Kind::kRegion;
  PDId pd{};
  AccessFlags access{};
  u64 start = 0, length = 0;
  u8* base = nullptr;
  bool bound = false;
  QPN qp{};
  u32 region = 0;
};

class ProtectionModel : public testing::TestWithParam<u64> {
 protected:
  static constexpr u32 kMaxEntries = 40;
  using Entry = std::map<u32, ModelKey>::iterator;

  PDId any_pd() { return PDId{static_cast<u32>(prng_.in(1, 2))}; }
  QPN any_qp() { return QPN{static_cast<u32>(prng_.in(1, 3))}; }
  AccessFlags any_access() { return AccessFlags(static_cast<u32>(prng_.below(64))); }
  Entry any_entry() {
    return std::next(model_.begin(), static_cast<std::ptrdiff_t>(prng_.below(model_.size())));
  }
  // Mostly a live key, sometimes a neighbour or a dead one.
  u32 any_key() {
    if (model_.empty() || prng_.chance(0.1)) return static_cast<u32>(prng_.next());
    const u32 key = any_entry()->first;
    return prng_.chance(0.1) ? key ^ static_cast<u32>(prng_.in(1, 255)) : key;
  }
  u64 any_iova() {
    switch (prng_.below(4)) {
      case 0: return 0;
      case 1: return ~u64{0} - prng_.below(2 * kLength);
      case 2: return prng_.below(2 * kLength);
      default: return prng_.next();
    }
  }
  // Near an edge of [start, start + length), or anywhere.
  u64 any_address(u64 start, u64 length) {
    switch (prng_.below(4)) {
      case 0: return start + prng_.below(3) - 1;
      case 1: return start + length + prng_.below(3) - 1;
      case 2: return start + prng_.below(length + 1);
      default: return any_iova();
    }
  }
  u64 any_length(u64 length) {
    switch (prng_.below(5)) {
      case 0: return prng_.below(3);
      case 1: return length + prng_.below(3) - 1;
      case 2: return prng_.below(length + 1);
      case 3: return u64{0} - prng_.below(2 * kLength);
      default: return prng_.next() >> prng_.below(64);
    }
  }
  static bool wraps(u64 start, u64 length) { return length != 0 && start > ~u64{0} - (length - 1); }
  static bool inside(const ModelKey& key, u64 address, u64 length) {
    if (length == 0) return address >= key.start && address - key.start <= key.length;
    if (wraps(address, length) || key.length == 0) return false;
    return address >= key.start && address + (length - 1) <= key.start + (key.length - 1);
  }
  static bool writes(AccessFlags access) {
    return access.has(Access::kRemoteWrite) || access.has(Access::kRemoteAtomic);
  }
  bool busy(u32 region) const {
    for (const auto& [key, entry] : model_)
      if (entry.bound && entry.region == region) return true;
    return false;
  }

  void register_region();
  void deregister_region();
  void reregister_region();
  void allocate_window();
  void deallocate_window();
  void bind_window();
  bool bind_is_legal(PDId pd, Entry window, u32 new_key, const MWBind& bind) const;
  void invalidate_window();
  void destroy_qp();
  void look_up();
  MemoryFault expected(const ModelKey& key, u64 address, u64 length, Access need) const;

  PRNG prng_{GetParam()};
  std::vector<u8> buffer_ = std::vector<u8>(kLength);
  ProtectionTable table_{kMaxEntries, prng_.fork()};
  std::map<u32, ModelKey> model_;
};

void ProtectionModel::register_region() {
  ModelKey key{.pd = any_pd(), .access = any_access()};
  const u64 offset = prng_.below(kLength);
  key.base = buffer_.data() + offset;
  key.length = prng_.below(kLength - offset + 1);
  key.start = any_iova();
  const u64 iova = key.start;
  if (key.access.has(Access::kZeroBased)) key.start = 0;
  const Result<MRKeys> got = table_.register_mr(key.pd, key.base, key.length, iova, key.access);
  if ((writes(key.access) && !key.access.has(Access::kLocalWrite)) ||
      wraps(key.start, key.length)) {
    ASSERT_EQ(status_of(got), Status::kInvalidArgument);
  } else if (model_.size() == kMaxEntries) {
    ASSERT_EQ(status_of(got), Status::kNoMemory);
  } else {
    ASSERT_TRUE(got.has_value());
    ASSERT_TRUE(model_.emplace(got->l_key.value, key).second);
  }
}

void ProtectionModel::deregister_region() {
  const u32 key = any_key();
  const auto entry = model_.find(key);
  const bool region = entry != model_.end() && entry->second.kind == ModelKey::Kind::kRegion;
  const Status wanted = !region ? Status::kNotFound : busy(key) ? Status::kBusy : Status::kOk;
  ASSERT_EQ(table_.deregister_mr(LKey{key}), wanted);
  if (wanted == Status::kOk) model_.erase(entry);
}

void ProtectionModel::reregister_region() {
  const u32 key = any_key();
  const PDId pd = any_pd();
  const AccessFlags access = any_access();
  const Result<MRKeys> got = table_.reregister_mr(LKey{key}, {.pd = &pd, .access = &access});
  const auto entry = model_.find(key);
  if (entry == model_.end() || entry->second.kind != ModelKey::Kind::kRegion) {
    ASSERT_EQ(status_of(got), Status::kNotFound);
    return;
  }
  if (busy(key)) {
    ASSERT_EQ(status_of(got), Status::kBusy);
    return;
  }
  ModelKey changed = entry->second;
  model_.erase(entry);
  changed.pd = pd;
  changed.access = access;
  if (access.has(Access::kZeroBased)) changed.start = 0;
  if (writes(access) && !access.has(Access::kLocalWrite)) {
    ASSERT_EQ(status_of(got), Status::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(got.has_value());
  ASSERT_EQ(got->l_key.value, key);
  model_.emplace(got->l_key.value, changed);
}

void ProtectionModel::allocate_window() {
  const MWType type = prng_.chance(0.5) ? MWType::k1 : MWType::k2;
  const PDId pd = any_pd();
  const Result<RKey> got = table_.allocate_mw(pd, type);
  ASSERT_EQ(got.has_value(), model_.size() < kMaxEntries);
  if (!got.has_value()) return;
  const auto kind = type == MWType::k1 ? ModelKey::Kind::kWindow1 : ModelKey::Kind::kWindow2;
  model_.emplace(got->value, ModelKey{.kind = kind, .pd = pd});
}

void ProtectionModel::deallocate_window() {
  const u32 key = any_key();
  const auto entry = model_.find(key);
  const bool window = entry != model_.end() && entry->second.kind != ModelKey::Kind::kRegion;
  ASSERT_EQ(table_.deallocate_mw(RKey{key}), window ? Status::kOk : Status::kNotFound);
  if (window) model_.erase(entry);
}

bool ProtectionModel::bind_is_legal(PDId pd, Entry window, u32 new_key, const MWBind& bind) const {
  constexpr u32 kWindowRights = 1 | 2 | 4 | 8 | 32;
  const ModelKey& w = window->second;
  if (w.kind == ModelKey::Kind::kRegion || w.pd != pd || (new_key ^ window->first) > 255)
    return false;
  if ((bind.access.bits & ~kWindowRights) != 0) return false;
  if (w.kind == ModelKey::Kind::kWindow1 && bind.access.has(Access::kZeroBased)) return false;
  if (w.kind == ModelKey::Kind::kWindow2 && (w.bound || bind.length == 0)) return false;
  if (bind.length == 0) return true;
  const auto region = model_.find(bind.mr_l_key.value);
  if (region == model_.end() || region->second.kind != ModelKey::Kind::kRegion) return false;
  const ModelKey& r = region->second;
  return r.pd == pd && r.access.has(Access::kMWBind) &&
         (!writes(bind.access) || r.access.has(Access::kLocalWrite)) &&
         inside(r, bind.address, bind.length);
}

void ProtectionModel::bind_window() {
  const PDId pd = any_pd();
  const QPN qp = any_qp();
  const u32 mw = any_key();
  const u32 new_key = prng_.chance(0.5)    ? mw
                      : prng_.chance(0.05) ? mw ^ 0x4200
                                           : mw ^ static_cast<u32>(prng_.below(256));
  MWBind bind{.mr_l_key = LKey{any_key()}};
  const auto region = model_.find(bind.mr_l_key.value);
  const ModelKey target = region == model_.end() ? ModelKey{} : region->second;
  bind.address = any_address(target.start, target.length);
  bind.length = any_length(target.length);
  bind.access = AccessFlags(static_cast<u32>(prng_.below(64)) & (prng_.chance(0.9) ? 46u : 63u));
  const Result<RKey> got = table_.bind_mw(pd, qp, RKey{mw}, RKey{new_key}, bind);

  const auto window = model_.find(mw);
  if (window == model_.end() || !bind_is_legal(pd, window, new_key, bind)) {
    ASSERT_EQ(status_of(got), Status::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(got.has_value());
  ModelKey changed = window->second;
  if (changed.kind == ModelKey::Kind::kWindow2 || new_key != mw) {
    ASSERT_EQ(got->value, new_key);
  } else {
    ASSERT_NE(got->value, mw);
  }
  model_.erase(window);
  changed.bound = bind.length != 0;
  changed.access = bind.access;
  changed.start = bind.access.has(Access::kZeroBased) ? 0 : bind.address;
  changed.length = bind.length;
  if (changed.bound) changed.base = target.base + (bind.address - target.start);
  changed.qp = qp;
  changed.region = bind.mr_l_key.value;
  model_.emplace(got->value, changed);
}

void ProtectionModel::invalidate_window() {
  const PDId pd = any_pd();
  const QPN qp = any_qp();
  const u32 key = any_key();
  const auto entry = model_.find(key);
  MemoryFault wanted = MemoryFault::kNone;
  if (entry == model_.end() || entry->second.pd != pd ||
      (entry->second.kind != ModelKey::Kind::kRegion && !entry->second.bound)) {
    wanted = MemoryFault::kBadKey;
  } else if (entry->second.kind != ModelKey::Kind::kWindow2 || entry->second.qp != qp) {
    wanted = MemoryFault::kAccess;
  }
  ASSERT_EQ(table_.invalidate(pd, qp, RKey{key}), wanted);
  if (wanted == MemoryFault::kNone) entry->second.bound = false;
}

void ProtectionModel::destroy_qp() {
  const QPN qp = any_qp();
  table_.invalidate_windows_of(qp);
  for (auto& [key, entry] : model_)
    if (entry.kind == ModelKey::Kind::kWindow2 && entry.qp == qp) entry.bound = false;
}

MemoryFault ProtectionModel::expected(const ModelKey& key, u64 address, u64 length,
                                      Access need) const {
  if (!key.access.has(need)) return MemoryFault::kAccess;
  return inside(key, address, length) ? MemoryFault::kNone : MemoryFault::kBounds;
}

void ProtectionModel::look_up() {
  constexpr std::array kNeeds = {Access::kRemoteRead, Access::kRemoteWrite, Access::kRemoteAtomic,
                                 Access::kLocalRead, Access::kLocalWrite};
  const Access need = kNeeds[prng_.below(kNeeds.size())];
  const bool local = need == Access::kLocalRead || need == Access::kLocalWrite;
  const PDId pd = any_pd();
  const QPN qp = any_qp();
  const u32 key = any_key();
  const auto entry = model_.find(key);
  const ModelKey target = entry == model_.end() ? ModelKey{} : entry->second;
  const u64 address = any_address(target.start, target.length);
  const u64 length = any_length(target.length);

  const bool region = target.kind == ModelKey::Kind::kRegion;
  const bool live = entry != model_.end() && target.pd == pd && (region || target.bound) &&
                    (region || !local) &&
                    (target.kind != ModelKey::Kind::kWindow2 || target.qp == qp);
  const MemoryFault wanted = length == 0 ? MemoryFault::kNone
                             : !live     ? MemoryFault::kBadKey
                                         : expected(target, address, length, need);
  const Resolved got = local ? table_.local(pd, LKey{key}, address, length, need)
                             : table_.remote(pd, qp, RKey{key}, address, length, need);
  ASSERT_EQ(got.fault, wanted);
  if (got && length != 0) {
    ASSERT_EQ(got.data, target.base + (address - target.start));
  }
}

TEST_P(ProtectionModel, AgreesWithAPlainMap) {
  for (u32 step = 0; step < 20'000; ++step) {
    switch (prng_.below(16)) {
      case 0: register_region(); break;
      case 1: deregister_region(); break;
      case 2: allocate_window(); break;
      case 3:
      case 4:
      case 5: bind_window(); break;
      case 6: invalidate_window(); break;
      case 7: prng_.chance(0.2) ? deallocate_window() : reregister_region(); break;
      case 8: prng_.chance(0.05) ? destroy_qp() : look_up(); break;
      default: look_up(); break;
    }
    ASSERT_FALSE(HasFatalFailure()) << "SIM_SEED=" << GetParam() << " step " << step;
    ASSERT_EQ(table_.size(), model_.size());
  }
  for (const PDId pd : {kPD, kOtherPD}) {
    bool used = false;
    for (const auto& [key, entry] : model_) used |= entry.pd == pd;
    EXPECT_EQ(table_.pd_in_use(pd), used);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProtectionModel, testing::Range<u64>(0, 100));

}  // namespace
}  // namespace verbena
