// A scenario of HPCC's ns-3 model: its files (topology.txt, flow.txt, config.txt) read, and turned
// into a network with that model's conventions:
//   time in whole nanoseconds, cut off as ns-3 does                       link.h
//   frames: data payload + 48 bytes, acknowledgements 60, pause frames 43; no preamble and no gap
//   an acknowledgement for each packet, which carries the CNP of a marked one
//   in switches acknowledgements share the data's queue and buffer; ECN at dequeue
//   headroom 3 * rate * delay of a port; alpha 1/8, more for ports faster than the NICs
//   a pause ends only by a resume
//   windows, and T of HPCC, are those of the network's longest way, seen by a payload's packet
//   HPCC's data carries 42 bytes of telemetry, and its acknowledgements as much; TIMELY's data 8
//   ECMP by Murmur3 over addresses and ports, seeded with the switch's number; routes.h has the
//   order DCQCN as NVIDIA's adapters do it, rates in whole bits per second, pacing in whole
//   nanoseconds
//   LINK_DOWN takes a link down for good, with what is on it, and at once all routes are others
// Three things differ. A host with several links hashes flows over them, with its number as seed.
// After an ACK timeout at the latest the sender repeats the packets that a failed link has lost;
// that model never notices the loss of a flow's last packets. And where acknowledgements go ahead
// of a pause, that model charges them to the paused priority until the headroom is full, and then
// loses frames. Here they then take from the rest of the buffer.
#pragma once

#include <vector>

#include "fabric/flow.h"
#include "fabric/hpcc_ns3/config.h"
#include "fabric/network.h"

namespace verbena::fabric::hpcc_ns3 {

struct Scenario {
  Config config;
  Topology topology;
  std::vector<Flow> flows;
};

// `n_nodes n_switches n_links`, the switches' numbers, then `a b rate delay error_rate`.
[[nodiscard]] Parsed<Topology> parse_topology(std::string_view name, std::string_view text);
// A count, then `src dst priority_group dst_port bytes start_s`. Source ports are 10000 and up, for
// each pair of hosts. A flow of no bytes has one too, and is left out: it sends nothing there, and
// never ends.
[[nodiscard]] Parsed<std::vector<Flow>> parse_flows(std::string_view name, std::string_view text,
                                                    const Topology& topology);

// Packets are marked at random, so that a single run may lie outside a bound by chance. With this
// seed all fat trees of tests/reference lie within theirs. docs/simulator.md
inline constexpr u64 kUsualSeed = 4;
[[nodiscard]] NetworkConfig network_config(const Scenario& scenario, u64 seed);
// Returns what the network needs and the scenario lacks; "" if nothing is missing.
[[nodiscard]] std::string check(const Scenario& scenario);

}  // namespace verbena::fabric::hpcc_ns3
