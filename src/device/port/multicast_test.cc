// Multicast through devices: attach, detach, one copy for each attached QP. IBTA 10.5, A17.4.5.2.
#include <gtest/gtest.h>

#include "device/testing.h"

namespace verbena {
namespace {

using test::kGIDA;
using test::kGIDB;
using test::kTestQKey;

constexpr GID kGroup = GID::from_ipv4(0xef010203);  // 239.1.2.3
constexpr u32 kGRHBytes = 40;

struct MulticastTest : ::testing::Test {
  QueuePair* create(test::Node& node) {
    QueuePair* const qp = node.create(QPType::kUD);
    EXPECT_EQ(node.bring_up(qp, {}, {}), QPState::kRTS);
    const SGE room = node.sge(1024, 512);
    EXPECT_EQ(node.device.post_receive(qp, {.wr_id = 1, .sg_list = {&room, 1}}, wire.now),
              PostError::kOk);
    EXPECT_EQ(node.device.post_receive(qp, {.wr_id = 2, .sg_list = {&room, 1}}, wire.now),
              PostError::kOk);
    return qp;
  }
  // The frame of a message from `from` to the group.
  EgressFrame send(QueuePair* from, QPN dest_qp = kMulticastQPN) {
    const SGE data = a.sge(0, 10);
    SendWR wr;
    wr.sg_list = {&data, 1};
    wr.destination = test::path_to(kGroup);
    wr.dest_qp = dest_qp;
    wr.q_key = kTestQKey;
    EXPECT_EQ(a.device.post_send(from, wr, wire.now), PostError::kOk);
    EgressFrame frame;
    EXPECT_TRUE(a.device.poll_frame(wire.now, frame));
    return frame;
  }
  void deliver(const EgressFrame& frame, test::Node& to) {
    const std::vector<u8> bytes = test::on_the_wire(frame);
    to.device.on_frame(test::received(frame, bytes), wire.now);
  }

  test::Wire wire;
  test::Node& a = wire.a;
  test::Node& b = wire.b;
  QueuePair* sender = create(a);
};

TEST_F(MulticastTest, EachAttachedQPGetsOneCopy) {
  QueuePair *const first = create(b), *const second = create(b), *const third = create(b);
  ASSERT_EQ(b.device.attach_multicast(first, kGroup), Status::kOk);
  ASSERT_EQ(b.device.attach_multicast(second, kGroup), Status::kOk);
  ASSERT_EQ(b.device.attach_multicast(second, kGroup), Status::kOk);  // still one copy
  const EgressFrame frame = send(sender);
  EXPECT_EQ(frame.destination, kGroup);
  a.memory[0] = 99;
  deliver(frame, b);
  for (QueuePair* const qp : {first, second}) {
    const std::optional<CQE> cqe = b.completion();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(cqe->qp, b.number(qp));
    EXPECT_EQ(cqe->source_qp, a.number(sender));
    EXPECT_EQ(cqe->byte_length, kGRHBytes + 10);
  }
  EXPECT_EQ(b.completion(), std::nullopt) << "the third is not attached";
  EXPECT_EQ(b.memory[1024 + kGRHBytes], 99);
  EXPECT_EQ(b.memory[1024 + 36], 239) << "the destination in the IPv4 header";
  EXPECT_EQ(b.device.multicast_group_of(third), std::nullopt);
}

TEST_F(MulticastTest, WithoutAnAttachedQPItIsDropped) {
  QueuePair* const qp = create(b);
  deliver(send(sender), b);
  ASSERT_EQ(b.device.attach_multicast(qp, kGroup), Status::kOk);
  ASSERT_EQ(b.device.attach_multicast(qp, GID::from_ipv4(0xef010204)), Status::kOk);
  EXPECT_TRUE(b.device.receives_multicast(kGroup));
  ASSERT_EQ(b.device.detach_multicast(qp, kGroup), Status::kOk);
  EXPECT_FALSE(b.device.receives_multicast(kGroup));
  deliver(send(sender), b);
  EXPECT_EQ(b.completion(), std::nullopt);
  EXPECT_EQ(b.device.counters().dropped_unknown_qp, 2u);
  EXPECT_EQ(b.device.detach_multicast(qp, kGroup), Status::kInvalidArgument);
}

TEST_F(MulticastTest, AGroupAndAQPNOfOneQPDoNotGoTogether) {
  QueuePair* const qp = create(b);
  ASSERT_EQ(b.device.attach_multicast(qp, kGroup), Status::kOk);
  deliver(send(sender, b.number(qp)), b);
  deliver(send(sender, kGSIQPN), b);
  EgressFrame frame = send(sender);
  frame.destination = kGIDB;
  deliver(frame, b);
  EXPECT_EQ(b.completion(), std::nullopt);
  EXPECT_EQ(b.device.counters().dropped_unknown_qp, 3u);
}

TEST_F(MulticastTest, EachQPChecksForItself) {
  QueuePair *const wrong_key = create(b), *const reset = create(b), *const good = create(b);
  QPModify change;
  change.q_key = QKey{5};
  ASSERT_EQ(b.device.modify_qp(wrong_key, change.set(QPField::kQKey), wire.now), Status::kOk);
  for (QueuePair* const qp : {wrong_key, reset, good})
    ASSERT_EQ(b.device.attach_multicast(qp, kGroup), Status::kOk);
  ASSERT_EQ(b.device.modify_qp(reset, test::to_state(QPState::kReset), wire.now), Status::kOk);
  deliver(send(sender), b);
  EXPECT_EQ(b.completion().value().qp, b.number(good));
  EXPECT_EQ(b.completion(), std::nullopt);
}

// A QP hears itself, as on a card, unless it is told not to.
TEST_F(MulticastTest, OwnMessages) {
  QPInit init = a.init(QPType::kUD);
  init.block_own_multicast = true;
  QueuePair* const deaf = a.device.create_qp(init).value();
  ASSERT_EQ(a.bring_up(deaf, {}, {}), QPState::kRTS);
  const SGE room = a.sge(1024, 512);
  ASSERT_EQ(a.device.post_receive(deaf, {.wr_id = 1, .sg_list = {&room, 1}}, wire.now),
            PostError::kOk);
  ASSERT_EQ(a.device.attach_multicast(sender, kGroup), Status::kOk);
  ASSERT_EQ(a.device.attach_multicast(deaf, kGroup), Status::kOk);
  const EgressFrame frame = send(sender);
  deliver(frame, a);
  EXPECT_EQ(a.completion().value().qp, a.number(sender));
  EXPECT_EQ(a.completion(), std::nullopt);
  EgressFrame others = frame;
  others.source = kGIDB;
  deliver(others, a);
  EXPECT_EQ(a.completion().value().qp, a.number(sender));
  EXPECT_EQ(a.completion().value().qp, a.number(deaf));
}

TEST_F(MulticastTest, WhatCannotBeAttached) {
  QueuePair* const qp = create(b);
  EXPECT_EQ(b.device.attach_multicast(b.create(QPType::kRC), kGroup), Status::kInvalidArgument);
  EXPECT_EQ(b.device.attach_multicast(qp, kGIDA), Status::kInvalidArgument);
  EXPECT_EQ(b.device.attach_multicast(qp, GID::parse("ff0e::1").value()), Status::kInvalidArgument)
      << "no IPv6 here";
}

TEST_F(MulticastTest, AnAttachedQPStays) {
  QueuePair* const qp = create(b);
  ASSERT_EQ(b.device.attach_multicast(qp, kGroup), Status::kOk);
  EXPECT_EQ(b.device.destroy_qp(qp), Status::kBusy);
  EXPECT_EQ(b.device.multicast_group_of(qp), kGroup);
  ASSERT_EQ(b.device.detach_multicast(qp, kGroup), Status::kOk);
  EXPECT_EQ(b.device.destroy_qp(qp), Status::kOk);
}

TEST(MulticastLimitsTest, GroupsAndTheirQPsAreLimited) {
  DeviceConfig config = test::config_at(kGIDA, QPN{0x100});
  config.limits.max_multicast_groups = 1;
  config.limits.max_qps_of_group = 2;
  test::Node node(config);
  QueuePair *const a = node.create(QPType::kUD), *const b = node.create(QPType::kUD),
                   *const c = node.create(QPType::kUD);
  EXPECT_EQ(node.device.attach_multicast(a, kGroup), Status::kOk);
  EXPECT_EQ(node.device.attach_multicast(b, kGroup), Status::kOk);
  EXPECT_EQ(node.device.attach_multicast(c, kGroup), Status::kNoMemory);
  EXPECT_EQ(node.device.attach_multicast(c, GID::from_ipv4(0xe0000001)), Status::kNoMemory);
  EXPECT_EQ(node.device.detach_multicast(a, kGroup), Status::kOk);
  EXPECT_EQ(node.device.attach_multicast(c, kGroup), Status::kOk);
}

TEST(MulticastLimitsTest, ADeviceMayHaveNone) {
  DeviceConfig config = test::config_at(kGIDA, QPN{0x100});
  config.limits.max_multicast_groups = 0;
  test::Node node(config);
  EXPECT_EQ(node.device.attach_multicast(node.create(QPType::kUD), kGroup), Status::kNotSupported);
}

}  // namespace
}  // namespace verbena
