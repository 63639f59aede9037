#include "jobs/plan/sonic.h"

#include <array>

#include <fmt/format.h>

namespace verbena::jobs {
namespace {

// A row of a table for each port, named PORT or, with a suffix, PORT|PRIORITY. `row` is JSON.
std::string rows(std::span<const std::string> ports, std::string_view suffix,
                 std::string_view row) {
  std::string text;
  for (const std::string& port : ports)
    text += fmt::format("{}\n    \"{}{}\": {}", text.empty() ? "" : ",", port, suffix, row);
  return text;
}

}  // namespace

std::string sonic_config(const TuningRequest& request, const Tuning& tuning,
                         std::span<const std::string> ports) {
  using namespace fmt::literals;
  static const std::array<std::string, 1> kPorts = {"Ethernet0"};
  if (ports.empty()) ports = kPorts;
  const std::string profile = fmt::format("pg_lossless_{}_{}m_profile",
                                          request.rate.bps() / 1'000'000, request.cable_metres);
  const std::string group = fmt::format("|{}", Tuning::kDataPriority);
  const std::string maps =
      fmt::format(R"({{"dscp_to_tc_map": "ROCE", "tc_to_queue_map": "ROCE", "pfc_enable": "{}"}})",
                  Tuning::kDataPriority);
  return fmt::format(
      R"({{
  "DSCP_TO_TC_MAP": {{"ROCE": {{"{data_dscp}": "{data}", "{notification_dscp}": "{notification}"}}}},
  "TC_TO_QUEUE_MAP": {{"ROCE": {{"{data}": "{data}", "{notification}": "{notification}"}}}},
  "WRED_PROFILE": {{"ROCE_LOSSLESS": {{
    "ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "{k_min}",
    "green_max_threshold": "{k_max}", "green_drop_probability": "{p_max:.0f}"}}}},
  "BUFFER_PROFILE": {{"{profile}": {{
    "pool": "ingress_lossless_pool", "size": "{headroom}", "xoff": "{headroom}", "dynamic_th": "0"}}}},
  "BUFFER_PG": {{{groups}}},
  "QUEUE": {{{queues}}},
  "PORT_QOS_MAP": {{
    "global": {{"dscp_to_tc_map": "ROCE"}},{port_maps}}}
}}
)",
      "data_dscp"_a = Tuning::kDataDSCP, "data"_a = Tuning::kDataPriority,
      "notification_dscp"_a = Tuning::kNotificationDSCP,
      "notification"_a = Tuning::kNotificationPriority, "k_min"_a = tuning.ecn.k_min,
      "k_max"_a = tuning.ecn.k_max, "p_max"_a = 100 * tuning.ecn.p_max, "profile"_a = profile,
      "headroom"_a = tuning.headroom.sum(),
      "groups"_a = rows(ports, group, fmt::format(R"({{"profile": "{}"}})", profile)),
      "queues"_a = rows(ports, group, R"({"wred_profile": "ROCE_LOSSLESS"})"),
      "port_maps"_a = rows(ports, "", maps));
}

}  // namespace verbena::jobs
