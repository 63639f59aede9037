#include "memory/imported_memory.h"

#include <algorithm>

#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 kOffsetBits = 48;
constexpr std::size_t kMaxRegions = 1u << 15;

u64 base_of(std::size_t region) { return u64{1} << 63 | region << kOffsetBits; }
std::size_t region_at(u64 place) { return place >> kOffsetBits & (kMaxRegions - 1); }
u64 offset_at(u64 place) { return place & ((u64{1} << kOffsetBits) - 1); }

}  // namespace

std::optional<u64> ImportedRegions::add(std::shared_ptr<ImportedMemory> memory) {
  if (copy_ == nullptr) copy_ = std::make_unique<std::array<u8, kMaxPayload>>();
  auto place = std::ranges::find(regions_, nullptr);
  if (place == regions_.end()) {
    if (regions_.size() == kMaxRegions) return std::nullopt;
    place = regions_.emplace(place);
  }
  *place = std::move(memory);
  return base_of(static_cast<std::size_t>(place - regions_.begin()));
}

void ImportedRegions::remove(u64 base) { regions_[region_at(base)].reset(); }

std::optional<Bytes> ImportedRegions::read(const u8* from, u64 length, u32 at) const {
  static constexpr std::array<u8, kMaxPayload> kZeros{};
  CHECK(at <= kMaxPayload && length <= kMaxPayload - at);
  if (from == nullptr) return Bytes(kZeros).first(length);
  const MutableBytes to = MutableBytes(*copy_).subspan(at, length);
  const u64 place = reinterpret_cast<u64>(from);
  if (!regions_[region_at(place)]->read(offset_at(place), to)) return std::nullopt;
  return to;
}

bool ImportedRegions::write(u8* to, Bytes from) const {
  if (to == nullptr) return true;
  const u64 place = reinterpret_cast<u64>(to);
  return regions_[region_at(place)]->write(offset_at(place), from);
}

}  // namespace verbena
