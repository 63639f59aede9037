#include "jobs/plan/tuning.h"

#include <variant>

#include <fmt/format.h>

#include "congestion/presets.h"
#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr u32 kPacketHeaders = 66;  // of a RoCEv2 packet with RETH: octets on the wire, with FCS

std::string size(u64 octets) { return fabric::octets_text(static_cast<double>(octets)); }
std::string rate(Rate rate) { return fabric::rate_text(static_cast<double>(rate.bps())); }

}  // namespace

Tuning tune(const TuningRequest& request) {
  Tuning tuning;
  tuning.link = {.rate = request.rate,
                 .cable_metres = request.cable_metres,
                 .longest_lossless_frame = request.mtu + kPacketHeaders};
  tuning.headroom = pfc_headroom(tuning.link);
  tuning.ecn = ecn_thresholds(request.rate);
  if (request.buffer_octets != 0)
    tuning.marks_before_pauses =
        marks_before_pauses({.octets = request.buffer_octets,
                             .ports = request.switch_ports,
                             .headroom = tuning.headroom.sum(),
                             .lossless_priorities = request.lossless_priorities});
  tuning.dcqcn = std::get<DCQCNParameters>(congestion_named("dcqcn", request.rate)->algorithm);
  return tuning;
}

std::string text_of(const TuningRequest& request, const Tuning& tuning) {
  const Headroom& h = tuning.headroom;
  std::string text = fmt::format("RoCEv2 on {} links, cables of {} m, path MTU {}\n\n",
                                 rate(request.rate), request.cable_metres, request.mtu);
  text += fmt::format("PFC headroom of a port and priority{:>25}\n", size(h.sum()));
  for (const auto& [what, octets] :
       {std::pair{"frame that the pause waits for", h.frame}, std::pair{"pause", h.pause},
        std::pair{"cable, there and back", h.cable}, std::pair{"PHY", h.phy},
        std::pair{"neighbour's response", h.response}, std::pair{"frame it has begun", h.last}})
    text += fmt::format("  {:<45}{:>13}\n", what, size(octets));
  text += fmt::format("\nECN marking: Kmin {}, Kmax {}, Pmax {:.0f} %\n", size(tuning.ecn.k_min),
                      size(tuning.ecn.k_max), 100 * tuning.ecn.p_max);
  if (request.buffer_octets != 0)
    text += fmt::format(
        "  with a buffer of {} and {} ports: Kmin below {} marks before it pauses, always{}\n",
        size(request.buffer_octets), request.switch_ports, size(tuning.marks_before_pauses),
        tuning.marks_before_pauses < tuning.ecn.k_min ? "; it is not" : "");
  const DCQCNParameters& d = tuning.dcqcn;
  text += fmt::format(
      "\nDCQCN at the NICs: rpg_ai_rate {}, rpg_hai_rate {}, rpg_time_reset {}, rpg_byte_reset "
      "{},\n"
      "  rpg_threshold {}, dce_tcp_g {:.0f}/1024, dce_tcp_rtt {}\n",
      rate(d.additive_increase), rate(d.hyper_increase), fabric::duration_text(d.increase_interval),
      size(d.byte_counter), d.fast_recovery, d.g * 1024, fabric::duration_text(d.alpha_interval));
  return text +
         fmt::format(
             "\nPriorities: data DSCP {} -> priority {} (lossless), CNPs DSCP {} -> priority "
             "{} (strict)\n",
             Tuning::kDataDSCP, Tuning::kDataPriority, Tuning::kNotificationDSCP,
             Tuning::kNotificationPriority);
}

// https://github.com/sonic-net/SONiC/wiki/Configuration
std::string sonic_config(const TuningRequest& request, const Tuning& tuning) {
  const u32 data = Tuning::kDataPriority;
  return fmt::format(
      R"({{
  "DSCP_TO_TC_MAP": {{"ROCE": {{"{}": "{}", "{}": "{}"}}}},
  "TC_TO_QUEUE_MAP": {{"ROCE": {{"{}": "{}", "{}": "{}"}}}},
  "WRED_PROFILE": {{"ROCE_LOSSLESS": {{
    "ecn": "ecn_all", "wred_green_enable": "true",
    "green_min_threshold": "{}", "green_max_threshold": "{}", "green_drop_probability": "{:.0f}"}}}},
  "BUFFER_PROFILE": {{"pg_lossless_{}_{}m_profile": {{
    "pool": "ingress_lossless_pool", "size": "{}", "xoff": "{}", "dynamic_th": "0"}}}},
  "PORT_QOS_MAP": {{"global": {{"dscp_to_tc_map": "ROCE"}},
    "Ethernet0": {{"dscp_to_tc_map": "ROCE", "tc_to_queue_map": "ROCE", "pfc_enable": "{}"}}}}
}}
)",
      Tuning::kDataDSCP, data, Tuning::kNotificationDSCP, Tuning::kNotificationPriority, data, data,
      Tuning::kNotificationPriority, Tuning::kNotificationPriority, tuning.ecn.k_min,
      tuning.ecn.k_max, 100 * tuning.ecn.p_max, request.rate.bps() / 1'000'000,
      request.cable_metres, tuning.headroom.sum(), tuning.headroom.sum(), data);
}

}  // namespace verbena::jobs
