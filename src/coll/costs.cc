#include "coll/costs.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

namespace verbena::coll {

Expected<Costs> Costs::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(VERBENA_COLL_INVALID, "cannot read " + path);
  Costs costs;
  std::string line;
  for (u32 number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first, what;
    u64 bytes = 0;
    double value = 0;
    if (!(words >> first)) continue;
    if (first == "latency") words >> costs.latency_ns_;
    if (first == "cost" && words >> what >> bytes >> value)
      (what == "reduce" ? costs.reduce_ : costs.copy_)[bytes] = value;
    if (!words && (first == "cost" || first == "latency"))
      return failure(VERBENA_COLL_INVALID,
                     path + ", line " + std::to_string(number) +
                         ": it is 'cost copy BYTES PS_PER_BYTE', 'cost reduce ...' or "
                         "'latency NS'");
  }
  if (costs.copy_.empty() || costs.reduce_.empty())
    return failure(
        VERBENA_COLL_INVALID,
        path + " has no costs of copies and reductions: `verbena coll --tune` writes them");
  return costs;
}

double Costs::at(const Curve& curve, u64 bytes) {
  const auto above = curve.lower_bound(bytes);
  if (above == curve.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == curve.end()) return below->second;
  const double part =
      std::log(static_cast<double>(bytes) / static_cast<double>(below->first)) /
      std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
  return below->second + part * (above->second - below->second);
}

}  // namespace verbena::coll
