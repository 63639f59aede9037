// Helpers for tests of networks: small topologies, configurations without the features that a test
// is not about, and the results of the flows of a network that was run.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "fabric/network.h"

namespace verbena::fabric::test {

constexpr Time at_us(i64 microseconds) { return Time::from_ns(microseconds * 1000); }

// Hosts 0 .. n - 1 on one switch, node n.
inline Topology star(u32 hosts, const LinkConfig& link = {}) {
  Topology topology;
  for (u32 i = 0; i < hosts; ++i) (void)topology.add_host();
  const NodeIndex hub = topology.add_switch();
  for (NodeIndex host = 0; host < hosts; ++host) topology.join(host, hub, link);
  return topology;
}

// Switches in a ring, one host at each: host i at switch kRing + i.
inline constexpr u32 kRing = 5;
inline Topology ring() {
  Topology topology;
  for (u32 i = 0; i < kRing; ++i) (void)topology.add_host();
  for (u32 i = 0; i < kRing; ++i) (void)topology.add_switch();
  for (u32 i = 0; i < kRing; ++i) topology.join(i, kRing + i, {});
  for (u32 i = 0; i < kRing; ++i) topology.join(kRing + i, kRing + (i + 1) % kRing, {});
  return topology;
}

inline std::vector<Flow> incast(u32 senders, u64 bytes) {
  std::vector<Flow> flows;
  for (NodeIndex i = 1; i <= senders; ++i)
    flows.push_back({.source = i, .destination = 0, .bytes = bytes});
  return flows;
}

// Packets of 1024 bytes; no marking and no congestion control; `headroom`: of what the standard
// asks for.
inline NetworkConfig pfc_alone(double headroom = 1) {
  NetworkConfig config;
  config.host = [](const LinkConfig&) {
    HostConfig host;
    host.device.active_mtu = MTU::k1024;
    return host;
  };
  config.switch_port = [headroom](const LinkConfig& link) {
    SwitchPortConfig port;
    port.marking.enabled = false;
    port.buffer.headroom = static_cast<u32>(
        headroom * static_cast<double>(headroom_for(link.rate, link.delay, 1024 + 66)));
    return port;
  };
  return config;
}

struct Ends final : Trace {
  void on_flow_finished(u32 flow, Time now) override { finished[flow] = now; }
  void on_flow_failed(u32 flow, Time) override { failed.push_back(flow); }
  void on_pause_received(NodeIndex, u32, u32, u32, Time) override {}
  std::map<u32, Time> finished;
  std::vector<u32> failed;
};

// A network that is run with these flows. All that was sent has arrived, or was counted as lost.
struct Course {
  static constexpr Time kEnd = Time::from_ns(60'000'000'000);

  Course(Topology t, const NetworkConfig& config, const std::vector<Flow>& flows)
      : topology(std::move(t)), network(topology, config) {
    network.set_trace(&ends);
    for (const Flow& flow : flows) EXPECT_TRUE(network.add_flow(flow));
    (void)network.run(kEnd);
    EXPECT_EQ(network.frames_in_flight(), 0u);
  }
  [[nodiscard]] double microseconds(u32 flow) const {
    const auto end = ends.finished.find(flow);
    EXPECT_NE(end, ends.finished.end());
    return end == ends.finished.end() ? 0 : static_cast<double>(end->second.ps()) * 1e-6;
  }
  Topology topology;
  Network network;
  Ends ends;
};

}  // namespace verbena::fabric::test
