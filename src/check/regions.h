// Regions: the memory regions of all devices of a process, by their L_Keys.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "check/site.h"
#include "memory/protection_table.h"
#include "memory/sge.h"

namespace verbena::check {

using DeviceId = const void*;  // tells devices of one process apart

struct Region {
  PDId pd;
  const u8* memory = nullptr;
  u64 length = 0, iova = 0;
  bool is_memory = true;  // false: the null region
  bool whole_process = false;
  Site registered;
};

class Regions {
 public:
  void insert(DeviceId device, LKey key, const Region& region) {
    of_[{device, key.value}] = region;
  }
  void erase(DeviceId device, LKey key) { of_.erase({device, key.value}); }
  [[nodiscard]] const Region* find(DeviceId device, LKey key) const {
    const auto found = of_.find({device, key.value});
    return found == of_.end() ? nullptr : &found->second;
  }
  // Returns the bytes that a list names; nullopt if not all of them belong to a region.
  [[nodiscard]] std::optional<std::vector<Bytes>> resolve(DeviceId device,
                                                          std::span<const SGE> list) const;
  [[nodiscard]] std::optional<Bytes> resolve(DeviceId device, const SGE& sge) const;

 private:
  std::map<std::pair<DeviceId, u32>, Region> of_;
};

}  // namespace verbena::check
