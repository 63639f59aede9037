// Neighbours: which way frames to a destination leave a raw link, as the kernel's tables say: to
// which MAC address, or not by this interface at all. Remembered, and looked up again every second.
// No allocation after construction. Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "host/network/next_hop.h"
#include "wire/eth/ethernet.h"
#include "wire/ib/gid.h"

namespace verbena::host {

class Neighbours {
 public:
  enum class Way : u8 {
    kNeighbour,  // to `mac`
    kRouter,     // to `mac`, which forwards IP and nothing else
    kThisHost,   // never leaves it
    kKernel,     // by the kernel's own stack: another interface, or a multicast group
    kUnsettled,  // by the kernel's own stack, which then asks for the neighbour's address, or asks
                 // again: `mac`, if any, is old
  };
  struct Route {
    Way way = Way::kKernel;
    std::optional<MAC> mac{};
  };

  explicit Neighbours(u32 interface_index)
      : interface_index_(interface_index), entries_(kEntries) {}
  [[nodiscard]] const Route& towards(const GID& destination, Time now);
  // Makes the kernel look up an unsettled neighbour, when no frame uses the kernel's stack. Not too
  // often.
  void ask(const GID& destination, Time now);

 private:
  static constexpr std::size_t kEntries = 512;  // by a hash; of two that meet, the later one stays

  struct Entry {
    GID destination{};
    Route route;
    Time next_look, next_question;
  };
  [[nodiscard]] Entry& entry_of(const GID& destination);
  [[nodiscard]] std::optional<NextHop> next_hop(const GID& destination) const;
  void look_up(Entry& entry, Time now) const;

  u32 interface_index_;
  std::vector<Entry> entries_;
};

}  // namespace verbena::host
