#include "congestion/presets.h"

#include <algorithm>
#include <array>

namespace verbena {
namespace {

Rate part_of(Rate rate, u64 divisor) {
  return std::max(mbps(1), Rate::from_bps(rate.bps() / divisor));
}

u64 bytes_in_50_us(Rate rate) {
  return std::clamp<u64>(rate.bps() / 8 / 20'000, 4096, 100'000'000);
}

// For lines of 25 Gb/s and above. With the paper's parameters alpha needs 256 periods of 55 us to
// fall from 1: until then each CNP halves the rate, and flows of a few milliseconds leave their
// link idle. Here alpha follows the CNPs in 64 periods of 5 us, CNPs come and rates rise twice as
// often, and a rise is 1 % of the line. docs/simulator.md has what K:1 incasts come to.
CongestionParameters dcqcn(Rate line_rate) {
  const Rate rise = part_of(line_rate, 100);
  return {.algorithm = DCQCNParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .g = 1.0 / 64,
                                       .alpha_interval = us(5),
                                       .increase_interval = us(25),
                                       .byte_counter = 0,
                                       .fast_recovery = 1,
                                       .additive_increase = rise,
                                       .hyper_increase = rise},
          .notification = {.cnp_interval = us(25)}};
}

// As adapters are shipped, whatever their rate. NVIDIA, DOCA documentation, "DCQCN CC Parameters":
// dce_tcp_g 1019 of 1024, dce_tcp_rtt 1 us, initial_alpha_value 1023, rate_reduce_monitor_period
// 4 us, rpg_min_rate 1 Mb/s, clamp_tgt_rate 0 and clamp_tgt_rate_after_time_inc 1, rpg_time_reset
// 300 us, rpg_byte_reset 32,767, rpg_threshold 1, rpg_ai_rate 5 Mb/s, rpg_hai_rate 50 Mb/s,
// min_time_between_cnps 4 us. rpg_min_dec_fac 50 is what a decrease comes to at most.
CongestionParameters dcqcn_nvidia(Rate line_rate) {
  return {.algorithm = DCQCNParameters{.line_rate = line_rate,
                                       .min_rate = mbps(1),
                                       .decrease = DCQCNParameters::Decrease::kPeriodic,
                                       .clamp = DCQCNParameters::Clamp::kAfterIncrease,
                                       .decrease_interval = us(4),
                                       .g = 5.0 / 1024,
                                       .initial_alpha = 1023.0 / 1024,
                                       .alpha_interval = us(1),
                                       .increase_interval = us(300),
                                       .byte_counter = 32'767,
                                       .fast_recovery = 1,
                                       .additive_increase = mbps(5),
                                       .hyper_increase = mbps(50)},
          .notification = {.cnp_interval = us(4)}};
}

// The paper's, with its rates in proportion to a line of 40 Gb/s.
CongestionParameters dcqcn_paper(Rate line_rate) {
  return {.algorithm = DCQCNParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .additive_increase = part_of(line_rate, 1000),
                                       .hyper_increase = part_of(line_rate, 100)}};
}

// The paper's values for 10 Gb/s, in proportion.
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

// Sets W_AI for 32 flows that share a link.
CongestionParameters hpcc(Rate line_rate) {
  HPCCParameters parameters;
  const double window = static_cast<double>(line_rate.bps()) / 8 * parameters.base_rtt.seconds();
  parameters.line_rate = line_rate;
  parameters.min_rate = std::min(line_rate, part_of(line_rate, 1000));
  parameters.additive_bytes = window * (1 - parameters.eta) / 32;
  return {.algorithm = parameters};
}

// Windows are the data that line_rate carries in 50 us; it is also the time in which a window may
// grow by a packet.
CongestionParameters dctcp(Rate line_rate) {
  return {.algorithm = DCTCPParameters{.line_rate = line_rate,
                                       .min_rate = std::min(line_rate, part_of(line_rate, 1000)),
                                       .additive_increase = std::min(line_rate, mbps(160))},
          .window = {.kind = WindowParameters::Kind::kByRate,
                     .bytes = bytes_in_50_us(line_rate),
                     .line_rate = line_rate},
          .notification = {.cnp_interval = Duration{}}};
}

// The window is the data that line_rate carries in 50 us.
CongestionParameters window(Rate line_rate) {
  return {.algorithm = ConstantRateParameters{.line_rate = line_rate},
          .window = {.kind = WindowParameters::Kind::kFixed, .bytes = bytes_in_50_us(line_rate)}};
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
constexpr Preset kPresets[] = {{"off", off},
                               {"dcqcn", dcqcn},
                               {"dcqcn_nvidia", dcqcn_nvidia},
                               {"dcqcn_paper", dcqcn_paper},
                               {"window", window},
                               {"timely", timely},
                               {"swift", swift},
                               {"hpcc", hpcc},
                               {"dctcp", dctcp},
                               {"ib_cc", ib_cc}};

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
