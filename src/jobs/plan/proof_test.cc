#include "jobs/plan/proof.h"

#include <gtest/gtest.h>

namespace verbena::jobs {
namespace {

Proof proof_for(Rate rate, u32 metres) {
  const TuningRequest request{.rate = rate, .cable_metres = metres};
  const Tuning tuning = tune(request);
  fabric::NetworkConfig network;
  network.switches.buffer.size = 8u << 20;
  network.switches.forwarding.latency = ns(300);  // which is not of the settings that are proven
  network.host = [](const fabric::LinkConfig&) {
    fabric::HostConfig host;
    host.device.active_mtu = MTU::k4096;
    return host;
  };
  return prove({request, tuning, network, 16}, [](const Progress&) { return false; });
}

// With what was computed nothing is dropped; a tenth less than what is needed drops; and what is
// needed is most of what was computed, so that it is neither too little nor far too much.
TEST(Proof, HoldsForRatesAndLengths) {
  for (const auto& [rate, metres] :
       {std::pair(gbps(100), 5u), std::pair(gbps(400), 100u), std::pair(gbps(800), 30u)}) {
    const Proof proof = proof_for(rate, metres);
    EXPECT_TRUE(proof.holds()) << rate.bps() << ", " << metres;
    ASSERT_EQ(proof.runs.size(), 5u);
    const u64 computed = proof.runs[0].headroom_bytes;
    EXPECT_LE(proof.least_headroom_bytes, computed);
    EXPECT_GT(proof.least_headroom_bytes, computed * 2 / 3) << rate.bps() << ", " << metres;
    EXPECT_GT(proof.runs[1].pauses, 0u);
    EXPECT_GE(proof.runs[1].victim_slowdown, 1);
    EXPECT_EQ(proof.runs[3].pauses, 0u);  // no PFC
    EXPECT_GT(proof.runs[3].drops, 0u);
    EXPECT_EQ(proof.runs[4].drops, 0u);
    EXPECT_LE(proof.runs[4].victim_slowdown, proof.runs[0].victim_slowdown);
  }
}

}  // namespace
}  // namespace verbena::jobs
