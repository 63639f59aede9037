// Costs: what a rank of this machine needs to receive an octet, as `verbena coll --tune` measured
// it: to copy it, or to add it to its own. Both depend on how much data an operation has in all,
// since that decides which cache it comes from.
#pragma once

#include <map>
#include <string>

#include "base/types.h"
#include "coll/error.h"

namespace verbena::coll {

class Costs {
 public:
  // Lines "cost copy OCTETS PS_PER_OCTET", "cost reduce OCTETS PS_PER_OCTET" and "latency NS";
  // others are for Table.
  [[nodiscard]] static Expected<Costs> read(const std::string& path);

  // Picoseconds for an octet of an operation of so many octets; between what was measured, by the
  // logarithm of the size.
  [[nodiscard]] double copy(u64 operation_octets) const { return at(copy_, operation_octets); }
  [[nodiscard]] double reduce(u64 operation_octets) const { return at(reduce_, operation_octets); }
  [[nodiscard]] double latency_ns() const { return latency_ns_; }

 private:
  using Curve = std::map<u64, double>;
  [[nodiscard]] static double at(const Curve& curve, u64 octets);
  Curve copy_{}, reduce_{};
  double latency_ns_ = 0;
};

}  // namespace verbena::coll
