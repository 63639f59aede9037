// Costs: what a rank of this machine needs to receive a byte, as `verbena coll --tune` measured
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
  // Lines "cost copy BYTES PS_PER_BYTE", "cost reduce BYTES PS_PER_BYTE" and "latency NS";
  // others are for Table.
  [[nodiscard]] static Expected<Costs> read(const std::string& path);

  // Picoseconds for a byte of an operation of so many bytes; between what was measured, by the
  // logarithm of the size.
  [[nodiscard]] double copy(u64 operation_bytes) const { return at(copy_, operation_bytes); }
  [[nodiscard]] double reduce(u64 operation_bytes) const { return at(reduce_, operation_bytes); }
  [[nodiscard]] double latency_ns() const { return latency_ns_; }

 private:
  using Curve = std::map<u64, double>;
  [[nodiscard]] static double at(const Curve& curve, u64 bytes);
  Curve copy_{}, reduce_{};
  double latency_ns_ = 0;
};

}  // namespace verbena::coll
