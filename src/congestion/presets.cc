#include "congestion/presets.h"

#include <algorithm>
#include <array>

namespace verbena {
namespace {

Rate part_of(Rate rate, u64 divisor) {
  return std::max(mbps(1), Rate::from_bps(rate.bps() / divisor));
}

u64 octets_in_50_us(Rate rate) {
  return std::clamp<u64>(rate.bps() / 8 / 20'000, 4096, 100'000'000);
}

// The paper's, with its rates in proportion to a line of 40 Gb/s.
CongestionParameters dcqcn(Rate line_rate) {
  return {.algorithm = DCQCNParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .additive_increase = part_of(line_rate, 1000),
                                       .hyper_increase = part_of(line_rate, 100)}};
}

// The paper's, for 10 Gb/s, in proportion.
CongestionParameters timely(Rate line_rate) {
  return {.algorithm = TIMELYParameters{.line_rate = line_rate,
                                        .min_rate = std::min(line_rate, part_of(line_rate, 100)),
                                        .delta = part_of(line_rate, 1000),
                                        .hyper_delta = part_of(line_rate, 200)}};
}

CongestionParameters swift(Rate line_rate) {
  SwiftParameters parameters{.line_rate = line_rate};
  parameters.max_window = parameters.longest_useful_window();
  return {.algorithm = parameters};
}

// W_AI for 32 flows that share a link.
CongestionParameters hpcc(Rate line_rate) {
  HPCCParameters parameters;
  const double window = static_cast<double>(line_rate.bps()) / 8 * parameters.base_rtt.seconds();
  parameters.line_rate = line_rate;
  parameters.min_rate = std::min(line_rate, part_of(line_rate, 1000));
  parameters.additive_octets = window * (1 - parameters.eta) / 32;
  return {.algorithm = parameters};
}

// What line_rate brings in 50 us: a window, and the time in which it may grow by a packet.
CongestionParameters dctcp(Rate line_rate) {
  return {.algorithm = DCTCPParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .additive_increase = std::min(line_rate, mbps(160))},
          .window = {.kind = WindowParameters::Kind::kByRate,
                     .octets = octets_in_50_us(line_rate),
                     .line_rate = line_rate},
          .notification = {.cnp_interval = Duration{}}};
}

// What line_rate brings in 50 us.
CongestionParameters window(Rate line_rate) {
  return {.algorithm = ConstantRateParameters{.line_rate = line_rate},
          .window = {.kind = WindowParameters::Kind::kFixed, .octets = octets_in_50_us(line_rate)}};
}

// Every marked packet has its BECN.
CongestionParameters ib_cc(Rate line_rate) {
  return {.algorithm = IBCCParameters{.line_rate = line_rate},
          .notification = {.cnp_interval = Duration{}}};
}

CongestionParameters off(Rate) { return {}; }

struct Preset {
  std::string_view name;
  CongestionParameters (*make)(Rate);
};
constexpr Preset kPresets[] = {{"off", off},       {"dcqcn", dcqcn}, {"window", window},
                               {"timely", timely}, {"swift", swift}, {"hpcc", hpcc},
                               {"dctcp", dctcp},   {"ib_cc", ib_cc}};

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
