#include "host/congestion_settings.h"

#include <cerrno>
#include <cstdlib>

#include "congestion/presets.h"

namespace verbena::host {
namespace {

constexpr const char* kDefault = "dcqcn";
// Loopback and its like do not tell: more than one QP has here, so that nobody starts with less.
constexpr u64 kUnknownSpeedMbps = 100'000;
// A thread that sleeps comes back some 50 us late, and a link wants frames in bursts.
constexpr Duration kBurst = us(100);
// The CNPs of a peer in software come when its thread does. Whoever rises in between forgets them.
constexpr Duration kIncreaseInterval = us(500);

}  // namespace

Expected<CongestionSettings> congestion_from_environment(u64 link_speed_mbps) {
  const char* const text = std::getenv(kCongestionVariable);
  const Rate line_rate = mbps(link_speed_mbps != 0 ? link_speed_mbps : kUnknownSpeedMbps);
  std::optional<CongestionParameters> congestion =
      congestion_named(text != nullptr ? text : kDefault, line_rate);
  if (!congestion) {
    std::string message =
        std::string(kCongestionVariable).append("=").append(text).append(" is none of");
    for (const std::string_view name : congestion_names()) message.append(" ").append(name);
    return failure(EINVAL, message);
  }
  if (auto* const dcqcn = std::get_if<DCQCNParameters>(&congestion->algorithm))
    dcqcn->increase_interval = kIncreaseInterval;
  // What the speed is told to be may not be what the path gives: only CNPs slow a QP down. The last
  // percent is for rates that only come close to where they started.
  return CongestionSettings{
      .congestion = *congestion,
      .pacing = {.burst = kBurst, .unpaced_from = Rate::from_bps(line_rate.bps() / 100 * 99)}};
}

}  // namespace verbena::host
