// PortCounter: what a file ports/1/counters/NAME or hw_counters/NAME of a device of ours says now.
// A program that has the device open is an RNIC of its own: it sees its own counters. Another one
// sees the sum of all programs of this user that run on the device. Both ask those programs, as
// `verbena stats` does (host/stats/snapshot.h).
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <optional>
#include <string_view>

#include "abi/paths/running_programs.h"
#include "base/types.h"
#include "device/port/counter_table.h"

namespace verbena::abi::paths {

class PortCounter {
 public:
  // `real_path`: in the tree. nullopt: it is another file.
  [[nodiscard]] static std::optional<PortCounter> of(std::string_view real_path);

  // Returns 0 if no program answers. Takes half a second at most.
  [[nodiscard]] u64 value() const;

 private:
  [[nodiscard]] u64 value_in(const Counters& counters) const;

  DeviceIdentity device_;
  const NamedCounter* counter_ = nullptr;  // or
  const NamedEngineCounter* engine_counter_ = nullptr;
};

}  // namespace verbena::abi::paths
