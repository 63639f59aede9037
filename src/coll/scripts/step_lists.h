// StepLists: a script that is written down, step by step, for one rank or for all. Live operations
// need the lists of their own rank only.
//
// Ranges lie in three areas, told apart by the top bits of the offset. Schedules of collectives/
// use offsets from 0, so their memory is the first area.
#pragma once

#include <utility>
#include <vector>

#include "collectives/script.h"

namespace verbena::coll {

inline constexpr u32 kAreaShift = 60;
enum class Area : u8 { kMain, kOutput, kTemporary };
inline constexpr u32 kAreas = 3;
[[nodiscard]] constexpr u64 offset_of(Area area) { return static_cast<u64>(area) << kAreaShift; }
[[nodiscard]] constexpr collectives::Range in(Area area, u64 offset, u64 length) {
  return {offset_of(area) + offset, length};
}

class StepLists final : public collectives::Script {
 public:
  StepLists(u32 ranks, u32 lanes) : lanes_(lanes), lists_(u64{ranks} * lanes) {}

  [[nodiscard]] u32 ranks() const override { return static_cast<u32>(lists_.size() / lanes_); }
  [[nodiscard]] u32 lanes() const override { return lanes_; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override { return list(rank, lane).size(); }
  [[nodiscard]] collectives::Step step(u32 rank, u32 lane, u64 index) const override {
    return list(rank, lane)[index];
  }
  [[nodiscard]] std::vector<u32> receivers(u32 rank, u32 lane) const override;

  void add(u32 rank, u32 lane, const collectives::Step& step) {
    lists_[u64{rank} * lanes_ + lane].push_back(step);
  }
  [[nodiscard]] u64 length(u32 rank, u32 lane) const { return list(rank, lane).size(); }

 private:
  [[nodiscard]] const std::vector<collectives::Step>& list(u32 rank, u32 lane) const {
    return lists_[u64{rank} * lanes_ + lane];
  }

  u32 lanes_;
  std::vector<std::vector<collectives::Step>> lists_;
};

}  // namespace verbena::coll
