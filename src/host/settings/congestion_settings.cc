#include "host/settings/congestion_settings.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "congestion/presets.h"

namespace verbena::host {
namespace {

constexpr std::string_view kDefault = "dcqcn";
// The speed for loopback and other links that report none: more than a QP reaches here, so that
// none starts with less.
constexpr u64 kUnknownSpeedMbps = 100'000;
// A thread that sleeps comes back some 50 us late, and a link wants frames in bursts.
constexpr Duration kBurst = us(100);
// A peer in software sends its CNPs when its thread runs. A sender that raises its rate in between
// loses their effect.
constexpr Duration kIncreaseInterval = us(500);

}  // namespace

Expected<CongestionSettings> congestion_from_environment(u64 link_speed_mbps) {
  const char* const text = std::getenv(kCongestionVariable);
  const Rate line_rate = mbps(link_speed_mbps != 0 ? link_speed_mbps : kUnknownSpeedMbps);
  const std::string_view name = text != nullptr ? text : kDefault;
  if (std::ranges::find(kCongestionNames, name) == kCongestionNames.end()) {
    std::string message = std::string(kCongestionVariable).append("=").append(name);
    message.append(" is none of");
    for (const std::string_view known : kCongestionNames) message.append(" ").append(known);
    return failure(EINVAL, message);
  }
  // The CNPs of software come late: the slower reactions of the paper's parameters suit them.
  const std::string_view preset = name == kDefault ? "dcqcn_paper" : name;
  std::optional<CongestionParameters> congestion = congestion_named(preset, line_rate);
  if (auto* const dcqcn = std::get_if<DCQCNParameters>(&congestion->algorithm))
    dcqcn->increase_interval = kIncreaseInterval;
  // The path may be slower than the reported speed: only CNPs slow a QP down. The last percent is
  // for rates that only come close to their initial value.
  return CongestionSettings{
      .congestion = *congestion,
      .pacing = {.burst = kBurst, .unpaced_from = Rate::from_bps(line_rate.bps() / 100 * 99)}};
}

Expected<CongestionSettings> congestion_in_fabric(Rate line_rate, u32 scale) {
  Expected<CongestionSettings> settings = congestion_from_environment(line_rate.bps() / 1'000'000);
  if (!settings) return settings;
  if (auto* const dcqcn = std::get_if<DCQCNParameters>(&settings->congestion.algorithm))
    dcqcn->increase_interval = DCQCNParameters{}.increase_interval;
  settings->pacing.burst = kBurst / scale;
  return settings;
}

}  // namespace verbena::host
