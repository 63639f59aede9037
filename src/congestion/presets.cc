#include "congestion/presets.h"

#include <algorithm>
#include <array>

namespace verbena {
namespace {

Rate part_of(Rate rate, u64 divisor) {
  return std::max(mbps(1), Rate::from_bps(rate.bps() / divisor));
}

// The paper's, with its rates in proportion to a line of 40 Gb/s.
CongestionParameters dcqcn(Rate line_rate) {
  return {.algorithm = DCQCNParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .additive_increase = part_of(line_rate, 1000),
                                       .hyper_increase = part_of(line_rate, 100)},
          .notification = {}};
}

CongestionParameters off(Rate) { return {}; }

struct Preset {
  std::string_view name;
  CongestionParameters (*make)(Rate);
};
constexpr Preset kPresets[] = {{"off", off}, {"dcqcn", dcqcn}};

}  // namespace

std::span<const std::string_view> congestion_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kPresets)> names;
    std::ranges::transform(kPresets, names.begin(), &Preset::name);
    return names;
  }();
  return kNames;
}

std::optional<CongestionParameters> congestion_named(std::string_view name, Rate line_rate) {
  const auto* const preset = std::ranges::find(kPresets, name, &Preset::name);
  if (preset == std::end(kPresets)) return std::nullopt;
  return preset->make(line_rate);
}

}  // namespace verbena
