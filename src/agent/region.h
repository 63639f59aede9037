// Region: memory of this process, registered with every rail. The kind of memory is decided here:
// ibv_reg_mr() takes what the device's library can reach, which is where GPU memory enters.
#pragma once

#include <memory>
#include <span>

#include "agent/error.h"
#include "communicator/verbs/rail.h"
#include "transfer/metadata.h"

namespace verbena::agent {

using coll::Rails;

class Region {
 public:
  // `rights`: of enum verbena_region_rights.
  [[nodiscard]] static Expected<std::unique_ptr<Region>> make(Rails rails, u64 id, void* address,
                                                              u64 length, unsigned rights);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // The metadata that peers receive, with R_Keys.
  [[nodiscard]] const transfer::RemoteRegion& published() const { return published_; }
  [[nodiscard]] bool is_remote() const { return published_.rights != 0; }
  [[nodiscard]] bool holds(u64 address, u64 length) const;
  [[nodiscard]] bool is_writable() const { return is_writable_; }
  [[nodiscard]] const std::array<u32, transfer::kMaxRails>& lkeys() const { return lkeys_; }

 private:
  Region() = default;
  transfer::RemoteRegion published_{};
  bool is_writable_ = false;
  std::array<u32, transfer::kMaxRails> lkeys_{};
  std::array<ibv_mr*, transfer::kMaxRails> regions_{};
};

}  // namespace verbena::agent
