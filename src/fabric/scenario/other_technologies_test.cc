#include "fabric/scenario/other_technologies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/scenario/scenario.h"

namespace verbena::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Parsed<Scenario> scenario_of(const std::string& text, const std::vector<Setting>& settings) {
  return read_scenario("s.yaml", text, settings, [](const std::string&) -> Parsed<std::string> {
    return tl::unexpected(InputError{"no such file"});
  });
}

constexpr const char* kOfAll = R"(
topology: {kind: star, hosts: 4}
hosts: {congestion-control: dcqcn}
switch: {pfc: on, ecn: {kmin: 50KB, kmax: 200KB}}
infiniband: {vls: 4}
tcp: {congestion_control: dctcp}
workload: incast
faults: {stuck_pause: h0, at: 10us}
)";

std::vector<std::string> left_out(std::string_view technology) {
  const auto scenario = scenario_of(kOfAll, {{"technology", std::string(technology)}});
  EXPECT_TRUE(scenario.has_value()) << technology << ": " << scenario.error().message;
  return scenario ? scenario->left_out : std::vector<std::string>{"refused"};
}

TEST(OtherTechnologies, AreLeftOutWhereTheTechnologyIsGivenBesides) {
  EXPECT_THAT(left_out("rocev2"), UnorderedElementsAre("infiniband", "tcp"));
  EXPECT_THAT(left_out("infiniband"),
              UnorderedElementsAre("tcp", "switch", "hosts.congestion_control", "faults"));
  EXPECT_THAT(left_out("iwarp"), UnorderedElementsAre("infiniband", "hosts.congestion_control"));
  EXPECT_THAT(left_out("tcp"), UnorderedElementsAre("infiniband", "hosts.congestion_control"));
}

TEST(OtherTechnologies, AreRefusedInAPlainFile) {
  EXPECT_FALSE(scenario_of(kOfAll, {}).has_value());
  EXPECT_FALSE(scenario_of(kOfAll, {{"seed", "2"}}).has_value());
}

TEST(OtherTechnologies, WhatHoldsForSeveralStays) {
  const auto scenario = scenario_of(
      "technology: infiniband\ntopology: star\nhosts: {congestion_control: window, mtu: 1024}\n"
      "workload: incast\n",
      {{"technology", "infiniband"}});
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_THAT(scenario->left_out, IsEmpty());
}

TEST(OtherTechnologies, SettingsOfOthersAreLeftOutToo) {
  const std::vector<Setting> settings = {{"infiniband.vls", "2"}, {"technology", "infiniband"}};
  const std::string plain = "topology: star\nworkload: incast\n";
  const auto theirs = scenario_of(plain, settings);
  ASSERT_TRUE(theirs.has_value()) << theirs.error().message;
  EXPECT_EQ(theirs->network.infiniband.lanes, 2u);
  const auto others = scenario_of(plain, {settings[0], {"technology", "tcp"}});
  ASSERT_TRUE(others.has_value()) << others.error().message;
  EXPECT_THAT(others->left_out, ElementsAre("infiniband.vls"));
}

TEST(OtherTechnologies, AreNamedInALine) {
  EXPECT_EQ(left_out_text(Technology::kTCP, {}), "");
  EXPECT_EQ(left_out_text(Technology::kTCP, {"infiniband", "hosts.path"}),
            "with tcp, left out of the file, since other technologies have it: infiniband, "
            "hosts.path");
}

}  // namespace
}  // namespace verbena::fabric
