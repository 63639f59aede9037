// The texts for switches and NICs have the numbers that were computed.
#include <gtest/gtest.h>

#include <vector>

#include <fmt/format.h>

#include "jobs/plan/eos.h"
#include "jobs/plan/nic_script.h"
#include "jobs/plan/nvue.h"
#include "jobs/plan/sonic.h"

namespace verbena::jobs {
namespace {

const TuningRequest kRequest{.rate = gbps(200), .cable_metres = 70};
const std::vector<std::string> kPorts = {"Ethernet0", "Ethernet8"};

// The number between two texts, of which the first is in `text` once; else one that nothing is.
u64 number(const std::string& text, const std::string& before, const std::string& after = "\n") {
  constexpr u64 kNone = ~u64{0};
  const size_t at = text.find(before);
  if (at == std::string::npos || text.find(before, at + 1) != std::string::npos) return kNone;
  const size_t begin = at + before.size(), end = text.find_first_not_of("0123456789", begin);
  if (end == begin || text.substr(end, after.size()) != after) return kNone;
  return std::stoull(text.substr(begin, end - begin));
}

size_t times(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(SONiC, HasTheNumbersForEachPort) {
  const Tuning tuning = tune(kRequest);
  const std::string text = sonic_config(kRequest, tuning, kPorts);
  EXPECT_EQ(number(text, R"("green_min_threshold": ")", "\""), tuning.ecn.k_min);
  EXPECT_EQ(number(text, R"("green_max_threshold": ")", "\""), tuning.ecn.k_max);
  EXPECT_EQ(number(text, R"("green_drop_probability": ")", "\""), 20u);
  EXPECT_EQ(number(text, R"("xoff": ")", "\""), tuning.headroom.sum());
  EXPECT_EQ(times(text, R"({"profile": "pg_lossless_200000_70m_profile"})"), 2u) << text;
  for (const std::string& port : kPorts) {
    EXPECT_EQ(times(text, fmt::format("\"{}|3\"", port)), 2u) << text;  // BUFFER_PG, QUEUE
    EXPECT_EQ(times(text, fmt::format("\"{}\"", port)), 1u) << text;    // PORT_QOS_MAP
  }
  EXPECT_EQ(times(sonic_config(kRequest, tuning, {}), "Ethernet0"), 3u);
}

TEST(NVUE, HasTheNumbers) {
  const Tuning tuning = tune(kRequest);
  const std::string text = nvue_commands(kRequest, tuning);
  EXPECT_EQ(number(text, "traffic-class 3 min-threshold "), tuning.ecn.k_min) << text;
  EXPECT_EQ(number(text, "traffic-class 3 max-threshold "), tuning.ecn.k_max);
  EXPECT_EQ(number(text, "traffic-class 3 probability "), 20u);
  EXPECT_EQ(number(text, "default-global cable-length "), 70u);
  EXPECT_EQ(number(text, "port and priority: ", " bytes"), tuning.headroom.sum());
  EXPECT_EQ(number(text, "dscp 26 switch-priority "), 3u);
  EXPECT_EQ(number(text, "dscp 48 switch-priority "), 6u);
}

// NVUE takes 1 m and more.
TEST(NVUE, ACableIsAMetreAtLeast) {
  const TuningRequest request{.cable_metres = 0};
  EXPECT_EQ(number(nvue_commands(request, tune(request)), "default-global cable-length "), 1u);
}

TEST(EOS, HasTheNumbersAndItsPorts) {
  const Tuning tuning = tune(kRequest);
  const std::string text = eos_config(kRequest, tuning, kPorts);
  EXPECT_EQ(number(text, "ecn minimum-threshold ", " bytes"), tuning.ecn.k_min) << text;
  EXPECT_EQ(number(text, " maximum-threshold ", " bytes"), tuning.ecn.k_max);
  EXPECT_EQ(number(text, " max-mark-probability ", " weight"), 20u);
  EXPECT_EQ(number(text, "port and priority: ", " bytes"), tuning.headroom.sum());
  EXPECT_EQ(number(text, "qos map dscp 26 to traffic-class "), 3u);
  EXPECT_EQ(number(text, "qos map dscp 48 to traffic-class "), 6u);
  for (const std::string& port : kPorts)
    EXPECT_EQ(times(text, fmt::format("interface {}\n   service-profile VERBENA_ROCE\n", port)),
              1u);
  EXPECT_EQ(times(eos_config(kRequest, tuning, {}), "interface Ethernet1/1\n"), 1u);
}

TEST(NICScript, HasTheNumbers) {
  const Tuning tuning = tune(kRequest);
  const std::string text = nic_script(kRequest, tuning);
  const auto written = [&text](const std::string& file) {
    const size_t line = text.rfind("\n", text.find(fmt::format(" > \"$ecn/{}\"", file))) + 1;
    return number(text.substr(line, text.find('\n', line) - line), "  echo ", " > ");
  };
  const DCQCNParameters& d = tuning.dcqcn;
  EXPECT_EQ(written("roce_rp/rpg_ai_rate"), d.additive_increase.bps() / 1'000'000) << text;
  EXPECT_EQ(written("roce_rp/rpg_hai_rate"), d.hyper_increase.bps() / 1'000'000);
  EXPECT_EQ(written("roce_rp/rpg_min_rate"), d.min_rate.bps() / 1'000'000);
  EXPECT_EQ(written("roce_rp/rpg_time_reset"), 25u);
  EXPECT_EQ(written("roce_rp/rpg_threshold"), d.fast_recovery);
  EXPECT_EQ(written("roce_rp/dce_tcp_g"), 1008u);
  EXPECT_EQ(written("roce_rp/dce_tcp_rtt"), 5u);
  EXPECT_EQ(written("roce_np/min_time_between_cnps"), 25u);
  EXPECT_EQ(written("roce_np/cnp_dscp"), 48u);
  EXPECT_EQ(written("roce_np/cnp_802p_prio"), 6u);
  EXPECT_EQ(number(text, "--pfc=0,0,0,1,0,0,0,0 --cable_len="), 70u);
  EXPECT_EQ(number(text, "tos=", "  # DSCP 26, ECT(0)"), 26u * 4 + 2);
}

// 15 bits, in NVIDIA's adapters.
TEST(NICScript, SetsAByteCounterThatFits) {
  Tuning tuning = tune(kRequest);
  EXPECT_NE(nic_script(kRequest, tuning).find(R"(echo 0 > "$ecn/roce_rp/rpg_byte_reset")"),
            std::string::npos);
  tuning.dcqcn.byte_counter = 10'000'000;
  EXPECT_NE(nic_script(kRequest, tuning).find("# rpg_byte_reset takes 32767 at most, not 10000000"),
            std::string::npos);
  tuning.dcqcn.byte_counter = 32'767;
  EXPECT_NE(nic_script(kRequest, tuning).find(R"(echo 32767 > "$ecn/roce_rp/rpg_byte_reset")"),
            std::string::npos);
}

}  // namespace
}  // namespace verbena::jobs
