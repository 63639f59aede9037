// PortCounter: what a file ports/1/counters/NAME or hw_counters/NAME of a device of ours says now.
// A program that has the device open is an RNIC of its own: it sees its own counters. Another one
// sees the sum of all programs of this user that run on the device. Both ask those programs, as
// `verbena stats` does (host/stats/snapshot.h).
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/types.h"
#include "device/counter_table.h"

namespace verbena::abi::paths {

class PortCounter {
 public:
  // `real_path`: in the tree. nullopt: it is another file.
  [[nodiscard]] static std::optional<PortCounter> of(std::string_view real_path);

  // 0 where nobody answers. Takes half a second at most.
  [[nodiscard]] u64 value() const;

 private:
  using Name = std::array<char, 16>;  // NUL-terminated
  using Address = std::array<u8, 16>;

  struct Sums {
    u64 own = 0, all = 0;
    bool has_own = false;
  };
  void ask_all(int socket, u64 nonce, u32& asked) const;
  bool receive(int socket, u64 nonce, Sums& sums) const;
  [[nodiscard]] bool is_of_this_device(const Name& device, const Address& ipv4,
                                       const Address& ipv6) const;
  [[nodiscard]] u64 value_in(const Counters& counters) const;

  Name device_{};
  std::array<Address, 2> addresses_{};     // of either family
  const NamedCounter* counter_ = nullptr;  // or
  const NamedEngineCounter* engine_counter_ = nullptr;
};

}  // namespace verbena::abi::paths
