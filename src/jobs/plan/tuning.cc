#include "jobs/plan/tuning.h"

#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "congestion/presets.h"
#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr u32 kPacketHeaders = 66;  // of a RoCEv2 packet with RETH: bytes on the wire, with FCS

std::string rate(Rate rate) { return fabric::rate_text(static_cast<double>(rate.bps())); }

}  // namespace

Tuning tune(const TuningRequest& request) {
  Tuning tuning;
  tuning.link = {.rate = request.rate,
                 .cable_metres = request.cable_metres,
                 .longest_lossless_frame = request.mtu + kPacketHeaders};
  tuning.headroom = pfc_headroom(tuning.link);
  tuning.ecn = ecn_thresholds(request.rate);
  if (request.buffer_bytes != 0)
    tuning.marks_before_pauses =
        marks_before_pauses({.bytes = request.buffer_bytes,
                             .ports = request.switch_ports,
                             .headroom = tuning.headroom.sum(),
                             .lossless_priorities = request.lossless_priorities});
  const CongestionParameters congestion = *congestion_named("dcqcn", request.rate);
  tuning.dcqcn = std::get<DCQCNParameters>(congestion.algorithm);
  tuning.notification = congestion.notification;
  return tuning;
}

u32 dce_tcp_g(const DCQCNParameters& parameters) {
  return static_cast<u32>(std::lround(1024 * (1 - parameters.g)));
}

std::string text_of(const TuningRequest& request, const Tuning& tuning) {
  const Headroom& h = tuning.headroom;
  std::string text = fmt::format("RoCEv2 on {} links, cables of {} m, path MTU {}\n\n",
                                 rate(request.rate), request.cable_metres, request.mtu);
  text += fmt::format("PFC headroom of a port and priority{:>25}\n", fabric::bytes_text(h.sum()));
  for (const auto& [what, bytes] :
       {std::pair{"frame that the pause waits for", h.frame}, std::pair{"pause", h.pause},
        std::pair{"cable, there and back", h.cable}, std::pair{"PHY", h.phy},
        std::pair{"neighbour's response", h.response}, std::pair{"frame it has begun", h.last}})
    text += fmt::format("  {:<45}{:>13}\n", what, fabric::bytes_text(bytes));
  text += fmt::format("\nECN marking: Kmin {}, Kmax {}, Pmax {:.0f} %\n",
                      fabric::bytes_text(tuning.ecn.k_min), fabric::bytes_text(tuning.ecn.k_max),
                      100 * tuning.ecn.p_max);
  if (request.buffer_bytes != 0)
    text += fmt::format(
        "  with a buffer of {} and {} ports: Kmin below {} marks before it pauses, always{}\n",
        fabric::bytes_text(request.buffer_bytes), request.switch_ports,
        fabric::bytes_text(tuning.marks_before_pauses),
        tuning.marks_before_pauses < tuning.ecn.k_min ? "; it is not" : "");
  const DCQCNParameters& d = tuning.dcqcn;
  text += fmt::format(
      "\nDCQCN at the NICs: rpg_ai_rate {}, rpg_hai_rate {}, rpg_time_reset {}, rpg_byte_reset "
      "{},\n"
      "  rpg_threshold {}, dce_tcp_g {}/1024 (g {:.0f}/1024), dce_tcp_rtt {}\n",
      rate(d.additive_increase), rate(d.hyper_increase), fabric::duration_text(d.increase_interval),
      fabric::bytes_text(d.byte_counter), d.fast_recovery, dce_tcp_g(d), d.g * 1024,
      fabric::duration_text(d.alpha_interval));
  return text +
         fmt::format(
             "\nPriorities: data DSCP {} -> priority {} (lossless), CNPs DSCP {} -> priority "
             "{} (strict)\n",
             Tuning::kDataDSCP, Tuning::kDataPriority, Tuning::kNotificationDSCP,
             Tuning::kNotificationPriority);
}

}  // namespace verbena::jobs
