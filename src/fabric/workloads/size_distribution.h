// Sizes of flows with a given distribution: a cumulative one, as points that are joined by straight
// lines. Files have a line for each point, `bytes percent`, from 0 to 100, as those of HPCC's
// traffic generator; # begins a comment.
// By name:
//   websearch   Alizadeh et al., "Data Center TCP", SIGCOMM 2010, figure 4
//   hadoop      Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015,
//   figure 6
// as points of https://github.com/alibaba-edu/High-Precision-Congestion-Control, traffic_gen.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "fabric/hpcc_ns3/words.h"

namespace verbena::fabric {

class SizeDistribution {
 public:
  struct Point {
    double bytes = 0, percent = 0;
  };

  [[nodiscard]] static std::optional<SizeDistribution> named(std::string_view name);
  [[nodiscard]] static std::span<const std::string_view> names();
  // `name`: of the file, for errors.
  [[nodiscard]] static Parsed<SizeDistribution> parse(std::string_view name, std::string_view text);
  [[nodiscard]] static SizeDistribution always(u64 bytes);

  [[nodiscard]] u64 draw(PRNG& prng) const;  // 1 at least
  [[nodiscard]] double mean() const;

 private:
  explicit SizeDistribution(std::vector<Point> points) : points_(std::move(points)) {}

  std::vector<Point> points_;  // two at least; neither value ever falls
};

}  // namespace verbena::fabric
