#include "device/port/local_traffic.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

constexpr LocalWork kWrites{.writes = 2, .write_packets = 4, .write_bytes = 3000};
constexpr LocalWork kReads{.reads = 1, .read_packets = 3, .read_bytes = 2500};

TEST(LocalTrafficTest, AWriteIsItsPacketsAndAnAcknowledgement) {
  const QPTraffic traffic = as_packets(kWrites, {});
  EXPECT_EQ(traffic.sent_packets, 4u);
  EXPECT_EQ(traffic.sent_bytes, 3000u + 4 * (12 + 4) + 2 * 16);
  EXPECT_EQ(traffic.received_packets, 2u);
  EXPECT_EQ(traffic.received_bytes, 2u * (12 + 4 + 4));
}

TEST(LocalTrafficTest, AReadIsARequestAndItsResponses) {
  const QPTraffic traffic = as_packets(kReads, {});
  EXPECT_EQ(traffic.sent_packets, 1u);
  EXPECT_EQ(traffic.sent_bytes, 12u + 16 + 4);
  EXPECT_EQ(traffic.received_packets, 3u);
  EXPECT_EQ(traffic.received_bytes, 2500u + 3 * (12 + 4) + 4);
}

TEST(LocalTrafficTest, WhatOneEndSendsTheOtherReceives) {
  for (const LocalWork& work : {kWrites, kReads}) {
    const QPTraffic here = as_packets(work, {}), there = as_packets({}, work);
    EXPECT_EQ(here.sent_packets, there.received_packets);
    EXPECT_EQ(here.sent_bytes, there.received_bytes);
    EXPECT_EQ(here.received_packets, there.sent_packets);
    EXPECT_EQ(here.received_bytes, there.sent_bytes);
  }
}

TEST(LocalTrafficTest, ItIsCountedAtThePort) {
  Counters port;
  port.port_xmit_packets = 1;
  port.port_rcv_packets = 2;
  add(port, as_packets(kWrites, kReads));
  EXPECT_EQ(port.port_xmit_packets, 1u + 4 + 3);
  EXPECT_EQ(port.port_rcv_packets, 2u + 2 + 1);
}

}  // namespace
}  // namespace verbena
