// Tuning: what switches and NICs of a RoCEv2 cluster are to be set to, for one rate and length of
// cables: headroom, thresholds, DCQCN, and the priorities.
#pragma once

#include <string>

#include "congestion/dcqcn/parameters.h"
#include "jobs/plan/ecn_thresholds.h"
#include "jobs/plan/pfc_headroom.h"

namespace verbena::jobs {

struct TuningRequest {
  Rate rate = gbps(400);
  u32 cable_metres = 30;
  u32 mtu = 4096;        // path MTU of RoCEv2, bytes
  u64 buffer_bytes = 0;  // of a switch; 0: not known
  u32 switch_ports = 64;
  u32 lossless_priorities = 1;
};

struct Tuning {
  HeadroomRequest link;
  Headroom headroom;
  ECNThresholds ecn;
  u64 marks_before_pauses = 0;  // k_min at most, in the worst case; 0: not known, or no such
  DCQCNParameters dcqcn;
  NotificationParameters notification;

  // The usual ones: RoCEv2 data, and CNPs before everything else.
  static constexpr u32 kDataDSCP = 26, kDataPriority = 3, kNotificationDSCP = 48,
                       kNotificationPriority = 6;
};

[[nodiscard]] Tuning tune(const TuningRequest& request);
// Returns a text for people, with the derivation of each number.
[[nodiscard]] std::string text_of(const TuningRequest& request, const Tuning& tuning);
// Returns g as NVIDIA's adapters take it: the part of the old alpha that remains, in 1/1024. 0 ..
// 1023
[[nodiscard]] u32 dce_tcp_g(const DCQCNParameters& parameters);

}  // namespace verbena::jobs
