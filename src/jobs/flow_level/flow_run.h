// A collective operation counted with rates instead of packets: all messages of a round are flows
// that share the links of the topology, and NVLink ports, max-min fairly. One round of each kind is
// counted, and taken as often as there are such. So 100,000 GPUs take seconds.
//
// The model omits queues, the way in which congestion control finds the fair rates, pauses, and
// ranks that run ahead of others. docs/jobs.md has its error against packets.
#pragma once

#include <string>

#include "collectives/schedule.h"
#include "fabric/topology.h"
#include "jobs/cluster.h"
#include "jobs/program/communicator.h"
#include "jobs/stop.h"

namespace verbena::jobs {

struct FlowLevelConfig {
  u32 packet_bytes = 4096;     // of payload
  u32 header_bytes = 50 + 12;  // of each packet, on the wire; fabric::packet_sizes()
  Duration switch_latency{};   // of each switch on the way
  bool cuts_through = false;   // switches do not wait for a packet's end
  u64 seed = 1;                // of ECMP's choices
};

struct FlowLevelResult {
  std::string mistake;  // "": none
  double seconds = 0;
};

[[nodiscard]] FlowLevelResult run_flow_level(const collectives::Schedule& schedule,
                                             const Cluster& cluster,
                                             const fabric::Topology& topology,
                                             const FlowLevelConfig& config, const Stop& stop);

// Runs the schedule in all groups of the communicator at the same time.
[[nodiscard]] FlowLevelResult run_flow_level(const collectives::Schedule& schedule,
                                             const Communicator& groups, const Cluster& cluster,
                                             const fabric::Topology& topology,
                                             const FlowLevelConfig& config, const Stop& stop);

}  // namespace verbena::jobs
