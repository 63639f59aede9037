#include "jobs/plan/tuning.h"

#include <gtest/gtest.h>

#include "fabric/network.h"
#include "jobs/plan/catalogue.h"
#include "jobs/testing.h"

namespace verbena::jobs {
namespace {

// IEEE 802.3, 31B.3.7 and 80.4: 394 quanta to respond and 122,880 bits for the PHY at 100 Gb/s.
TEST(PFCHeadroom, IsTheSumOfItsParts) {
  const Headroom h = pfc_headroom({.rate = gbps(100), .cable_metres = 100});
  EXPECT_EQ(h.frame, 9216u + 20);
  EXPECT_EQ(h.pause, 84u);
  EXPECT_EQ(h.cable, 100'000'000'000 / 8 / 1'000'000);  // 1 us
  EXPECT_EQ(h.phy, 122'880u / 8);
  EXPECT_EQ(h.response, 394u * 512 / 8);
  EXPECT_EQ(h.last, 4096u + 66 + 20);
  EXPECT_EQ(h.sum(), h.frame + h.pause + h.cable + h.phy + h.response + h.last);
}

TEST(PFCHeadroom, GrowsWithCableAndRate) {
  const auto headroom = [](u64 rate, u32 metres) {
    return pfc_headroom({.rate = gbps(rate), .cable_metres = metres}).sum();
  };
  EXPECT_EQ(headroom(400, 300) - headroom(400, 200), 400'000'000'000 / 8 / 1'000'000);
  u64 before = 0;
  for (const u64 rate : {10, 25, 40, 100, 200, 400, 800}) {
    EXPECT_GT(headroom(rate, 30), before) << rate;
    before = headroom(rate, 30);
  }
  EXPECT_EQ(pfc_headroom({.rate = gbps(400), .cable_metres = 0}).response, 905u * 512 / 8);
}

// Zhu et al., SIGCOMM 2015, 4: a switch of 32 ports with 12 MB, headroom of 22.4 KB, beta 8: 21.7
// KB.
TEST(ECNThresholds, TheBoundIsThePapers) {
  const u64 bound = marks_before_pauses({.bytes = 12'000'000, .ports = 32, .headroom = 22'400});
  EXPECT_NEAR(static_cast<double>(bound), 21'700, 100);
  EXPECT_EQ(marks_before_pauses({.bytes = 1'000'000, .ports = 64, .headroom = 22'400}), 0u);
}

TEST(ECNThresholds, GrowWithTheRate) {
  EXPECT_EQ(ecn_thresholds(gbps(100)).k_min, 400'000u);
  EXPECT_EQ(ecn_thresholds(gbps(100)).k_max, 1'600'000u);
  EXPECT_EQ(ecn_thresholds(gbps(400)).k_min, 1'600'000u);
}

// Sixteen hosts send to one at once, and the switch has the headroom that was computed for its
// cables: nothing is dropped. What the simulated neighbours do not need is for the PHY and the
// response, so with the rest alone something is.
u64 drops_with(u64 headroom, const Tuning& tuning) {
  const Duration delay = ns(5 * static_cast<i64>(tuning.link.cable_metres));
  const TestNetwork net = star(17, {.rate = tuning.link.rate, .delay = delay});
  fabric::NetworkConfig config;
  config.switches.buffer.size = 17 * headroom + (512u << 10);
  config.host = [](const fabric::LinkConfig&) {
    fabric::HostConfig host;
    host.device.active_mtu = MTU::k4096;
    return host;
  };
  config.switch_port = [headroom](const fabric::LinkConfig&) {
    fabric::SwitchPortConfig port;
    port.marking.enabled = false;
    port.buffer.headroom = static_cast<u32>(headroom);
    return port;
  };
  fabric::Network network(net.topology, config);
  for (u32 host = 1; host < 17; ++host)
    EXPECT_TRUE(network.add_flow({.source = host, .destination = 0, .bytes = 1'000'000}));
  EXPECT_FALSE(network.run(Time::never()));
  EXPECT_EQ(network.flows_finished(), 16u);
  return network.counters().drops;
}

TEST(Tuning, NothingIsDroppedWithItsHeadroom) {
  const Tuning tuning = tune({.rate = gbps(400), .cable_metres = 100});
  EXPECT_EQ(drops_with(tuning.headroom.sum(), tuning), 0u);
  EXPECT_GT(drops_with(tuning.headroom.cable / 2, tuning), 0u);
}

TEST(Tuning, SaysHowItComesAbout) {
  const TuningRequest request{.rate = gbps(400), .cable_metres = 30, .buffer_bytes = 64u << 20};
  const Tuning tuning = tune(request);
  const std::string text = text_of(request, tuning);
  EXPECT_TRUE(text.starts_with("RoCEv2 on 400 Gb/s links, cables of 30 m, path MTU 4096\n"))
      << text;
  EXPECT_NE(text.find("Kmin 1.6 MB, Kmax 6.4 MB, Pmax 20 %"), std::string::npos) << text;
  EXPECT_NE(text.find("dce_tcp_g 1008/1024 (g 16/1024)"), std::string::npos) << text;
}

TEST(Catalogue, EverythingHasASource) {
  for (const NICModel& nic : nic_models()) EXPECT_FALSE(nic.source.empty()) << nic.name;
  for (const SwitchModel& model : switch_models()) EXPECT_FALSE(model.source.empty()) << model.name;
  EXPECT_EQ(nic_models().size(), 4u);
}

}  // namespace
}  // namespace verbena::jobs
