#include "wire/roce/source_port.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace verbena {
namespace {

TEST(SourcePortTest, OfAFlowLabel) {
  EXPECT_EQ(source_port_of_flow_label(0), 0xc000);
  EXPECT_EQ(source_port_of_flow_label(0x03fff), 0xffff);
  EXPECT_EQ(source_port_of_flow_label(0xfffff), 0xc000 | (0x3fff ^ 0x3f));
  EXPECT_EQ(source_port_of_flow_label(0x04000), 0xc001);
  EXPECT_EQ(source_port_of_flow_label(0x100000), 0xc000);  // only 20 bits count
}

TEST(SourcePortTest, IsADynamicPort) {
  PRNG prng(1);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_GE(source_port_of(QPN{static_cast<u32>(prng.below(1u << 24))},
                             QPN{static_cast<u32>(prng.below(1u << 24))}),
              kFirstSourcePort);
}

TEST(SourcePortTest, BothEndsOfAConnectionAgree) {
  EXPECT_EQ(source_port_of(QPN{0x11}, QPN{0x1234}), source_port_of(QPN{0x1234}, QPN{0x11}));
}

TEST(SourcePortTest, LinuxChoosesTheSame) {
  // QP numbers and source ports of connected QPs, as in tests/captures/rxe-tshark.tsv.
  EXPECT_EQ(source_port_of(QPN{0x12}, QPN{0x12}), 49476);  // rxe-rc-write.pcap
  EXPECT_EQ(source_port_of(QPN{0x14}, QPN{0x14}), 49552);  // rxe-rc-atomic.pcap
  EXPECT_EQ(source_port_of(QPN{0x26}, QPN{0x27}), 50634);  // rxe-ipv6.pcap
}

TEST(SourcePortTest, NeighbouringQPsSpread) {
  std::set<u16> ports;
  for (u32 qpn = 0x100; qpn < 0x200; ++qpn) ports.insert(source_port_of(QPN{qpn}, QPN{qpn}));
  EXPECT_GT(ports.size(), 240u);
}

}  // namespace
}  // namespace verbena
