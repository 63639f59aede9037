// Lists of a device's objects, for observers (object_info.h).
#include <algorithm>
#include <array>

#include "base/check.h"
#include "device/device_impl.h"
#include "memory/key_table.h"

namespace verbena {
namespace {

constexpr std::size_t kKeysAtOnce = 64;
static_assert(kNoPlace == ProtectionTable::kNoPlace);

ObjectInfo object_info_of(const ProtectionTable& memory, const ProtectionDomain& pd) {
  return {.number = pd.table_slot(), .uses = pd.users + memory.uses_of(pd.id)};
}

ObjectInfo object_info_of(const ProtectionTable&, const CompletionQueue& cq) {
  return {.number = cq.table_slot(), .uses = cq.users, .size = cq.capacity()};
}

ObjectInfo object_info_of(const ProtectionTable&, const SharedReceiveQueue& srq) {
  return {.number = srq.table_slot(),
          .pd = srq.pd.table_slot(),
          .uses = srq.users,
          .size = srq.limits().depth,
          .is_xrc = srq.xrcd != nullptr};
}

ObjectInfo object_info_of(const ProtectionTable& memory, LKey key) {
  const KeyInfo region = memory.describe(key.value).value_or(KeyInfo{});
  return {.number = key.value >> kKeyVariantBits,
          .pd = region.pd.value,
          .key = key.value,
          .size = region.length};
}

template <typename T>
std::size_t list_table(const ObjectTable<T>& table, const ProtectionTable& memory, u32& place,
                       std::span<ObjectInfo> out) {
  std::size_t count = 0;
  const T* next = table.find_from(place);
  for (; next != nullptr && count < out.size(); next = table.find_from(next->table_slot() + 1))
    out[count++] = object_info_of(memory, *next);
  place = next != nullptr ? next->table_slot() : kNoPlace;
  return count;
}

std::size_t list_regions(const ProtectionTable& memory, u32& place, std::span<ObjectInfo> out) {
  std::size_t count = 0;
  while (count < out.size() && place != kNoPlace) {
    std::array<LKey, kKeysAtOnce> keys;
    const auto some = std::span(keys).first(std::min(keys.size(), out.size() - count));
    for (const LKey key : some.first(memory.list_regions(place, some)))
      out[count++] = object_info_of(memory, key);
  }
  return count;
}

}  // namespace

u32 Device::object_count(ObjectKind kind) const {
  switch (kind) {
    case ObjectKind::kPD: return impl_->pds.size();
    case ObjectKind::kCQ: return impl_->cqs.size();
    case ObjectKind::kMR: return impl_->memory.region_count();
    case ObjectKind::kSRQ: return impl_->srqs.size();
  }
  CHECK_UNREACHABLE();
}

std::size_t Device::list_objects(ObjectKind kind, u32& place, std::span<ObjectInfo> out) const {
  switch (kind) {
    case ObjectKind::kPD: return list_table(impl_->pds, impl_->memory, place, out);
    case ObjectKind::kCQ: return list_table(impl_->cqs, impl_->memory, place, out);
    case ObjectKind::kMR: return list_regions(impl_->memory, place, out);
    case ObjectKind::kSRQ: return list_table(impl_->srqs, impl_->memory, place, out);
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
