#include "jobs/plan/nvue.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {

std::string nvue_commands(const TuningRequest& request, const Tuning& tuning) {
  using namespace fmt::literals;
  return fmt::format(
      R"(# RoCEv2 on {rate} links, cables of {cable} m
nv set qos roce mode lossless
nv set qos mapping default-global trust both
nv set qos mapping default-global dscp {data_dscp} switch-priority {data}
nv set qos mapping default-global dscp {notification_dscp} switch-priority {notification}
nv set qos egress-queue-mapping default-global switch-priority {data} traffic-class {data}
nv set qos egress-queue-mapping default-global switch-priority {notification} traffic-class {notification}
nv set qos egress-scheduler default-global traffic-class {notification} mode strict
nv set qos pfc default-global switch-priority {data}
nv set qos pfc default-global tx enable
nv set qos pfc default-global rx enable
# Headroom of a port and priority: {headroom} bytes computed. Not set: the switch has it from the
# length of the cable.
nv set qos pfc default-global cable-length {least_cable}
nv set qos congestion-control default-global traffic-class {data} ecn enable
nv set qos congestion-control default-global traffic-class {data} min-threshold {k_min}
nv set qos congestion-control default-global traffic-class {data} max-threshold {k_max}
nv set qos congestion-control default-global traffic-class {data} probability {p_max:.0f}
nv config apply
)",
      "rate"_a = fabric::rate_text(static_cast<double>(request.rate.bps())),
      "cable"_a = request.cable_metres, "data_dscp"_a = Tuning::kDataDSCP,
      "data"_a = Tuning::kDataPriority, "notification_dscp"_a = Tuning::kNotificationDSCP,
      "notification"_a = Tuning::kNotificationPriority, "headroom"_a = tuning.headroom.sum(),
      "least_cable"_a = std::max(request.cable_metres, 1u), "k_min"_a = tuning.ecn.k_min,
      "k_max"_a = tuning.ecn.k_max, "p_max"_a = 100 * tuning.ecn.p_max);
}

}  // namespace verbena::jobs
