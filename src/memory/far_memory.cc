#include "memory/far_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 kOffsetBits = 48;
constexpr std::size_t kMaxRegions = 1u << 15;

u64 base_of(std::size_t region) { return u64{1} << 63 | region << kOffsetBits; }
std::size_t region_at(u64 place) { return place >> kOffsetBits & (kMaxRegions - 1); }
u64 offset_at(u64 place) { return place & ((u64{1} << kOffsetBits) - 1); }

}  // namespace

void CopyJob::end(CopyState state) {
  const std::shared_ptr<FarMemory> region = std::move(memory);
  const std::shared_ptr<void> keeps = std::move(pool);  // freed last
  const PeerPlace other_end = std::exchange(peer, {});
  state_.store(state, std::memory_order_release);
  region->running_.fetch_sub(1, std::memory_order_release);
}

std::optional<u64> FarRegions::add(std::shared_ptr<FarMemory> memory, u32 skew) {
  CHECK(skew < 8);
  auto place = std::ranges::find(regions_, nullptr);
  if (place == regions_.end()) {
    if (regions_.size() == kMaxRegions) return std::nullopt;
    place = regions_.emplace(place);
    skews_.push_back(0);
  }
  const std::size_t region = static_cast<std::size_t>(place - regions_.begin());
  *place = std::move(memory);
  skews_[region] = static_cast<u8>(skew);
  return base_of(region) + skew;
}

const FarMemory& FarRegions::memory_at(u64 base) const { return *regions_[region_at(base)]; }

void FarRegions::remove(u64 base) { regions_[region_at(base)].reset(); }

FarRegions::Place FarRegions::find(const u8* at) const {
  const u64 place = reinterpret_cast<u64>(at);
  const std::size_t region = region_at(place);
  return {regions_[region], offset_at(place) - skews_[region]};
}

}  // namespace verbena
