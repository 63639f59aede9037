#include "fabric/packet_faults.h"

#include "fabric/testing.h"
#include "faults/spec.h"

namespace verbena::fabric {
namespace {

using test::Course;
using test::pfc_alone;
using test::star;

constexpr u64 kBytes = 1'024'000;  // 1000 packets

// Rules at link 0: `tx` is what host 0 sends, or its switch where `node` is 2.
Course with_rules(const std::string& rules, NodeIndex node = 0, u32 threads = 1, u64 seed = 1) {
  NetworkConfig config = pfc_alone();
  config.faults.rules = {{.link = 0, .node = node, .rules = faults::parse_rules(rules).value()}};
  config.threads = threads;
  config.seed = seed;
  return {star(2), config, {{.source = 0, .destination = 1, .bytes = kBytes}}};
}

TEST(PacketFaults, LossIsOfTheDirectionThatIsAskedFor) {
  const Course none = with_rules("loss opcode=write dir=rx");  // host 0 receives acknowledgements
  EXPECT_EQ(none.network.counters().lost(), 0u);
  const Course sent = with_rules("loss opcode=write dir=tx nth=5");
  EXPECT_EQ(sent.network.counters().lost(), 1u);
  EXPECT_EQ(sent.ends.finished.size(), 1u);
  const Course turned = with_rules("loss opcode=write dir=rx nth=5", 2);
  EXPECT_EQ(turned.network.counters().lost(), 1u);
}

TEST(PacketFaults, APartIsLostAndTheFlowEnds) {
  const Course course = with_rules("loss 1% dir=tx");
  EXPECT_EQ(course.ends.finished.size(), 1u);
  EXPECT_GT(course.network.counters().lost(), 2u);
  EXPECT_LT(course.network.counters().lost(), 100u);
}

TEST(PacketFaults, DelayIsAddedToEachWay) {
  const double alone = with_rules("loss 0%").microseconds(0);
  EXPECT_NEAR(with_rules("delay by=50us dir=tx").microseconds(0) - alone, 50, 0.1);
  EXPECT_NEAR(with_rules("delay by=50us").microseconds(0) - alone, 100, 0.1);
}

TEST(PacketFaults, DuplicatesReorderingAndCorruptionAreSurvived) {
  for (const char* const rules :
       {"duplicate 5%", "reorder 1% by=5us", "corrupt 1%", "burst-loss", "mark 50%",
        "flap up=50us down=20us", "duplicate 2%; reorder 1%; loss 0.5%"}) {
    const Course course = with_rules(rules);
    EXPECT_EQ(course.ends.finished.size(), 1u) << rules;
  }
}

TEST(PacketFaults, SameSeedSameFaultsForAnyNumberOfThreads) {
  const Course one = with_rules("loss 1%; reorder 2%; duplicate 1%"),
               two = with_rules("loss 1%; reorder 2%; duplicate 1%", 0, 2),
               other = with_rules("loss 1%; reorder 2%; duplicate 1%", 0, 1, 7);
  EXPECT_EQ(one.ends.finished, two.ends.finished);
  EXPECT_EQ(one.network.counters(), two.network.counters());
  EXPECT_NE(one.ends.finished, other.ends.finished);
}

TEST(PacketFaults, WhatALinkCannotDoIsRefused) {
  EXPECT_EQ(refusal_of(faults::parse_rules("loss 1%; delay by=1us").value()), "");
  for (const char* const rules : {"nak code=sequence", "rnr", "qp-error", "cq-overrun",
                                  "registration-error", "corrupt icrc=good"})
    EXPECT_NE(refusal_of(faults::parse_rules(rules).value()), "") << rules;
}

}  // namespace
}  // namespace verbena::fabric
