#include "jobs/plan/eos.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

std::string interface(std::string_view name) {
  return fmt::format("interface {}\n   service-profile VERBENA_ROCE\n!\n", name);
}

}  // namespace

std::string eos_config(const TuningRequest& request, const Tuning& tuning,
                       std::span<const std::string> ports) {
  using namespace fmt::literals;
  std::string text = fmt::format(
      R"(! RoCEv2 on {rate} links, cables of {cable} m
! Headroom of a port and priority: {headroom} bytes computed. Not set: no public manual was found that
! says how.
! Platforms whose queues are not apart for unicast have tx-queue for uc-tx-queue.
qos map dscp {data_dscp} to traffic-class {data}
qos map dscp {notification_dscp} to traffic-class {notification}
!
qos profile VERBENA_ROCE
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority {data} no-drop
   !
   uc-tx-queue {data}
      random-detect ecn minimum-threshold {k_min} bytes maximum-threshold {k_max} bytes max-mark-probability {p_max:.0f} weight 0
   !
   uc-tx-queue {notification}
      priority strict
!
)",
      "rate"_a = fabric::rate_text(static_cast<double>(request.rate.bps())),
      "cable"_a = request.cable_metres, "headroom"_a = tuning.headroom.sum(),
      "data_dscp"_a = Tuning::kDataDSCP, "data"_a = Tuning::kDataPriority,
      "notification_dscp"_a = Tuning::kNotificationDSCP,
      "notification"_a = Tuning::kNotificationPriority, "k_min"_a = tuning.ecn.k_min,
      "k_max"_a = tuning.ecn.k_max, "p_max"_a = 100 * tuning.ecn.p_max);
  if (ports.empty()) text += "! In place of the switch's own ports:\n" + interface("Ethernet1/1");
  for (const std::string& port : ports) text += interface(port);
  return text;
}

}  // namespace verbena::jobs
