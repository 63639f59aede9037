// Objects of a device: tables, limits, references between objects, events. The port:
// device_port_test.cc.
#include "device/device.h"

#include <gtest/gtest.h>

#include "device/testing.h"

namespace verbena {
namespace {

using test::kGIDA;
using test::kGIDB;
using test::kStart;
using test::Node;
using test::path_to;
using test::to_state;
using test::Wire;

DeviceConfig small() {
  DeviceConfig config = test::config_at(kGIDA, QPN{0x100});
  config.limits.max_qp = 3;
  config.limits.max_cq = 3;
  config.limits.max_pd = 2;
  config.limits.max_srq = 1;
  config.limits.max_cqe = 1000;
  config.limits.max_qp_wr = 100;
  config.limits.max_srq_wr = 50;
  return config;
}

struct DeviceTest : ::testing::Test {
  Node node{small()};
  Device& device = node.device;
  static constexpr ReceiveQueueLimits kSRQ{.depth = 8, .max_sge = 1};
};

TEST_F(DeviceTest, PDIsBusyWithAMemoryRegion) {
  EXPECT_EQ(device.dealloc_pd(node.pd), Status::kBusy);
  EXPECT_EQ(device.memory().deregister_mr(node.keys.l_key), Status::kOk);
  EXPECT_EQ(device.dealloc_pd(node.pd), Status::kOk);
}

TEST_F(DeviceTest, PDIsBusyWithAMemoryWindow) {
  ProtectionDomain* const pd = device.alloc_pd().value();
  const RKey mw = device.memory().allocate_mw(pd->id, MWType::k1).value();
  EXPECT_EQ(device.dealloc_pd(pd), Status::kBusy);
  EXPECT_EQ(device.memory().deallocate_mw(mw), Status::kOk);
  EXPECT_EQ(device.dealloc_pd(pd), Status::kOk);
}

TEST_F(DeviceTest, PDIsBusyWithAQPAndWithAnSRQ) {
  ProtectionDomain* const pd = device.alloc_pd().value();
  QPInit init = node.init(QPType::kUD);
  init.pd = pd;
  QueuePair* const qp = device.create_qp(init).value();
  EXPECT_EQ(device.dealloc_pd(pd), Status::kBusy);
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  SharedReceiveQueue* const srq = device.create_srq({.pd = pd, .limits = kSRQ}).value();
  EXPECT_EQ(device.dealloc_pd(pd), Status::kBusy);
  EXPECT_EQ(device.destroy_srq(srq), Status::kOk);
  EXPECT_EQ(device.dealloc_pd(pd), Status::kOk);
}

TEST_F(DeviceTest, CQIsBusyWithEitherQueueOfAQP) {
  CompletionQueue* const send_cq = device.create_cq(4, nullptr).value();
  CompletionQueue* const receive_cq = device.create_cq(4, nullptr).value();
  QPInit init = node.init(QPType::kUC);
  init.send_cq = send_cq;
  init.receive_cq = receive_cq;
  QueuePair* const qp = device.create_qp(init).value();
  EXPECT_EQ(device.destroy_cq(send_cq), Status::kBusy);
  EXPECT_EQ(device.destroy_cq(receive_cq), Status::kBusy);
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  EXPECT_EQ(device.destroy_cq(send_cq), Status::kOk);
  EXPECT_EQ(device.destroy_cq(receive_cq), Status::kOk);
}

TEST_F(DeviceTest, SRQIsBusyWithAQP) {
  SharedReceiveQueue* const srq = device.create_srq({.pd = node.pd, .limits = kSRQ}).value();
  QPInit init = node.init(QPType::kRC);
  init.srq = srq;
  QueuePair* const qp = device.create_qp(init).value();
  EXPECT_EQ(device.destroy_srq(srq), Status::kBusy);
  EXPECT_EQ(device.post_receive(qp, {}, kStart), PostError::kBadState);
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  EXPECT_EQ(device.destroy_srq(srq), Status::kOk);
}

TEST_F(DeviceTest, FullTablesAreNoMemory) {
  EXPECT_TRUE(device.alloc_pd().has_value());
  EXPECT_EQ(device.alloc_pd().error(), Status::kNoMemory);
  EXPECT_TRUE(device.create_cq(1, nullptr).has_value());
  EXPECT_TRUE(device.create_cq(1, nullptr).has_value());
  EXPECT_EQ(device.create_cq(1, nullptr).error(), Status::kNoMemory);
  EXPECT_TRUE(device.create_srq({.pd = node.pd, .limits = kSRQ}).has_value());
  EXPECT_EQ(device.create_srq({.pd = node.pd, .limits = kSRQ}).error(), Status::kNoMemory);
  for (int i = 0; i < 3; ++i) node.create(QPType::kUC);
  EXPECT_EQ(device.create_qp(node.init(QPType::kUC)).error(), Status::kNoMemory);
}

TEST_F(DeviceTest, WhatIsBeyondTheLimitsIsRefused) {
  EXPECT_EQ(device.create_cq(1001, nullptr).error(), Status::kInvalidArgument);
  EXPECT_EQ(device.resize_cq(node.cq, 1001), Status::kInvalidArgument);
  EXPECT_EQ(device.create_srq({.pd = node.pd, .limits = {.depth = 51, .max_sge = 1}}).error(),
            Status::kInvalidArgument);
  EXPECT_EQ(device.create_srq({.pd = node.pd, .limits = {.depth = 1, .max_sge = 31}}).error(),
            Status::kInvalidArgument);
  EXPECT_EQ(device.create_srq({.pd = nullptr, .limits = kSRQ}).error(), Status::kInvalidArgument);
}

TEST_F(DeviceTest, AQPBeyondTheLimitsIsRefused) {
  const auto refused = [this](auto alter) {
    QPInit init = node.init(QPType::kRC);
    init.send.depth = init.receive.depth = 100;
    alter(init);
    const Result<QueuePair*> qp = device.create_qp(init);
    return qp.has_value() ? Status::kOk : qp.error();
  };
  EXPECT_EQ(refused([](QPInit& i) { i.send.depth = 101; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.send.max_sge = 31; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.send.max_inline_bytes = 1025; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.receive.depth = 101; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.receive.max_sge = 31; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.pd = nullptr; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.send_cq = nullptr; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.receive_cq = nullptr; }), Status::kInvalidArgument);
  EXPECT_EQ(refused([](QPInit& i) { i.type = QPType::kRawPacket; }), Status::kNotSupported);
  EXPECT_EQ(refused([](QPInit&) {}), Status::kOk);
}

TEST_F(DeviceTest, GrantsAtLeastWhatIsAskedAndAtLeastOne) {
  QPInit init = node.init(QPType::kUD);
  init.send = {.depth = 0, .max_sge = 0, .max_inline_bytes = 17};
  init.receive = {.depth = 7, .max_sge = 0};
  init.user = &init;
  QueuePair* const qp = device.create_qp(init).value();
  const QPInit& granted = device.init_of(qp);
  EXPECT_GE(granted.send.depth, 1u);
  EXPECT_GE(granted.send.max_sge, 1u);
  EXPECT_GE(granted.send.max_inline_bytes, 17u);
  EXPECT_GE(granted.receive.depth, 7u);
  EXPECT_GE(granted.receive.max_sge, 1u);
  EXPECT_EQ(Device::user_of(qp), &init);
  EXPECT_GE(device.capacity_of(device.create_cq(0, nullptr).value()), 1u);
  EXPECT_EQ(device.attributes_of(qp).path_mtu, device.config().active_mtu);
  EXPECT_EQ(device.attributes_of(qp).state, QPState::kReset);
}

TEST_F(DeviceTest, QPNumbersComeFromTheRangeAndNotBackAtOnce) {
  QueuePair* const first = node.create(QPType::kUC);
  EXPECT_EQ(node.number(first), QPN{0x100});
  EXPECT_EQ(device.find_qp(QPN{0x100}), first);
  EXPECT_EQ(device.destroy_qp(first), Status::kOk);
  EXPECT_EQ(device.find_qp(QPN{0x100}), nullptr);
  EXPECT_EQ(node.number(node.create(QPType::kUC)), QPN{0x101});
  EXPECT_EQ(node.number(node.create(QPType::kUC)), QPN{0x102});
  EXPECT_EQ(node.number(node.create(QPType::kUC)), QPN{0x100});
}

TEST_F(DeviceTest, SRQLimitEventOnceWhenFewerAreLeft) {
  int user = 0;
  SharedReceiveQueue* const srq =
      device.create_srq({.pd = node.pd, .limits = kSRQ, .user = &user}).value();
  EXPECT_EQ(Device::user_of(srq), &user);
  EXPECT_EQ(device.post_srq_receive(srq, {}, kStart), PostError::kOk);
  EXPECT_EQ(device.modify_srq(srq, {.limit = 1}), Status::kOk);
  EXPECT_FALSE(device.poll_async_event().has_value());
  EXPECT_EQ(device.modify_srq(srq, {.limit = 2}), Status::kOk);  // fewer already: at once
  const std::optional<AsyncEvent> event = device.poll_async_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, AsyncEventType::kSRQLimitReached);
  EXPECT_EQ(event->srq, srq);
  EXPECT_EQ(device.srq_limit(srq), 0u);
  EXPECT_EQ(device.modify_srq(srq, {.limit = 9}), Status::kInvalidArgument);
  EXPECT_EQ(device.modify_srq(srq, {.depth = 51}), Status::kInvalidArgument);
  EXPECT_EQ(device.modify_srq(srq, {.depth = 20}), Status::kOk);
  EXPECT_EQ(device.limits_of(srq).depth, 20u);
}

// IBTA 10.2.9.2: an SRQ has a PD of its own, and its receives are checked against that one.
TEST(DeviceSRQTest, ReceivesAreOfTheSRQsPD) {
  for (const QPType type : {QPType::kRC, QPType::kUC}) {
    test::Wire wire;
    test::Node& b = wire.b;
    SharedReceiveQueue* const srq =
        b.device.create_srq({.pd = b.pd, .limits = {.depth = 8, .max_sge = 1}}).value();
    QPInit init = b.init(type);
    init.pd = b.device.alloc_pd().value();
    init.srq = srq;
    QueuePair* const to = b.device.create_qp(init).value();
    QueuePair* const from = wire.a.create(type);
    ASSERT_EQ(wire.a.bring_up(from, test::kGIDB, b.number(to)), QPState::kRTS);
    ASSERT_EQ(b.bring_up(to, test::kGIDA, wire.a.number(from)), QPState::kRTS);

    const SGE room = b.sge(0, 64), data = wire.a.sge(0, 64);
    RecvWR receive;
    receive.wr_id = 7;
    receive.sg_list = {&room, 1};
    ASSERT_EQ(b.device.post_srq_receive(srq, receive, wire.now), PostError::kOk);
    SendWR send;
    send.sg_list = {&data, 1};
    ASSERT_EQ(wire.a.device.post_send(from, send, wire.now), PostError::kOk);
    wire.run();
    const std::optional<CQE> cqe = b.completion();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(cqe->wr_id, 7u);
    EXPECT_EQ(cqe->status, WQEStatus::kSuccess);
  }
}

TEST_F(DeviceTest, PostingReceivesFromInitOn) {
  QueuePair* const qp = node.create(QPType::kRC);
  EXPECT_EQ(device.post_receive(qp, {}, kStart), PostError::kBadState);
  EXPECT_EQ(device.modify_qp(qp, test::to_init(QPType::kRC), kStart), Status::kOk);
  EXPECT_EQ(device.post_receive(qp, {}, kStart), PostError::kOk);
  EXPECT_EQ(device.post_send(qp, {}, kStart), PostError::kBadState);
}

TEST_F(DeviceTest, WhatIsPostedInErrorIsFlushed) {
  for (const QPType type : {QPType::kRC, QPType::kUC, QPType::kUD}) {
    QueuePair* const qp = node.create(type);
    EXPECT_EQ(node.bring_up(qp, kGIDB, QPN{9}), QPState::kRTS);
    EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kError), kStart), Status::kOk);
    SendWR send;
    send.wr_id = 1;
    send.destination = path_to(kGIDB);
    EXPECT_EQ(device.post_send(qp, send, kStart), PostError::kOk);
    EXPECT_EQ(device.post_receive(qp, {.wr_id = 2, .sg_list = {}}, kStart), PostError::kOk);
    for (const u64 wr_id : {1u, 2u}) {
      const std::optional<CQE> cqe = node.completion();
      ASSERT_TRUE(cqe.has_value());
      EXPECT_EQ(cqe->wr_id, wr_id);
      EXPECT_EQ(cqe->status, WQEStatus::kFlushed);
      EXPECT_EQ(cqe->qp, node.number(qp));
    }
  }
}

TEST_F(DeviceTest, EnteringErrorFlushesAndResetForgets) {
  QueuePair* const qp = node.create(QPType::kUC);
  node.bring_up(qp, kGIDB, QPN{9});
  EXPECT_EQ(device.post_receive(qp, {.wr_id = 7, .sg_list = {}}, kStart), PostError::kOk);
  EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kError), kStart), Status::kOk);
  EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kReset), kStart), Status::kOk);
  EXPECT_FALSE(node.completion().has_value());
  EXPECT_EQ(device.attributes_of(qp).dest_qp, QPN{});
  EXPECT_EQ(node.bring_up(qp, kGIDB, QPN{9}), QPState::kRTS);  // and is as new
}

TEST_F(DeviceTest, ADestroyedQPLeavesNothingBehind) {
  QueuePair* const qp = node.create(QPType::kRC);
  node.bring_up(qp, kGIDB, QPN{9});
  EXPECT_EQ(device.post_receive(qp, {.wr_id = 7, .sg_list = {}}, kStart), PostError::kOk);
  SendWR wr;
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
  EgressFrame frame;
  EXPECT_TRUE(device.poll_frame(kStart, frame));
  EXPECT_NE(device.next_timer(), Time::never());
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
  EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kError), kStart), Status::kOk);
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  EXPECT_FALSE(node.completion().has_value());
  EXPECT_FALSE(device.poll_frame(kStart, frame));
  EXPECT_FALSE(device.poll_async_event().has_value());
  EXPECT_EQ(device.next_timer(), Time::never());
}

TEST_F(DeviceTest, ADestroyedQPsWindowsDoNotPassToItsSuccessor) {
  QueuePair* const qp = node.create(QPType::kRC);
  const QPN number = node.number(qp);
  const RKey mw = device.memory().allocate_mw(node.pd->id, MWType::k2).value();
  ASSERT_EQ(device.memory().deregister_mr(node.keys.l_key), Status::kOk);
  const AccessFlags access =
      Access::kLocalWrite | Access::kRemoteWrite | AccessFlags(Access::kMWBind);
  const MRKeys keys =
      device.memory()
          .register_mr(node.pd->id, node.memory.data(), 4096, node.address(), access)
          .value();
  const Result<RKey> bound = device.memory().bind_mw(node.pd->id, number, mw, mw,
                                                     {.mr_l_key = keys.l_key,
                                                      .address = node.address(),
                                                      .length = 16,
                                                      .access = Access::kRemoteWrite});
  ASSERT_TRUE(bound.has_value());
  const auto reachable = [&] {
    return bool(device.memory().remote(node.pd->id, number, *bound, node.address(), 16,
                                       Access::kRemoteWrite));
  };
  EXPECT_TRUE(reachable());
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  EXPECT_FALSE(reachable());
}

TEST_F(DeviceTest, UDNeedsADestinationThatCanBeReached) {
  QueuePair* const qp = node.create(QPType::kUD);
  node.bring_up(qp, kGIDB, QPN{9});
  SendWR wr;
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kBadDestination);
  wr.destination = path_to(*GID::parse("fe80::1"));  // from an IPv4 address
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kBadDestination);
  wr.destination = path_to(kGIDB);
  wr.destination.source_gid_index = 1;
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kBadDestination);
  wr.destination.source_gid_index = 0;
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
}

TEST_F(DeviceTest, CompletionEventsCarryTheUserPointer) {
  int user = 0;
  CompletionQueue* const cq = device.create_cq(4, &user).value();
  EXPECT_EQ(Device::user_of(cq), &user);
  QPInit init = node.init(QPType::kUC);
  init.send_cq = cq;
  QueuePair* const qp = device.create_qp(init).value();
  node.bring_up(qp, kGIDB, QPN{9});
  device.request_notification(cq, NotifyOn::kAnyCompletion, kStart);
  EXPECT_FALSE(device.poll_completion_event().has_value());
  SendWR wr;
  wr.signaled = true;
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
  EgressFrame frame;
  EXPECT_TRUE(device.poll_frame(kStart, frame));
  EXPECT_EQ(device.poll_completion_event(), std::optional<void*>(&user));
  EXPECT_FALSE(device.poll_completion_event().has_value());
}

TEST_F(DeviceTest, ADestroyedCQTakesItsNotificationAlong) {
  CompletionQueue* const cq = device.create_cq(4, nullptr).value();
  QPInit init = node.init(QPType::kUC);
  init.send_cq = cq;
  QueuePair* const qp = device.create_qp(init).value();
  node.bring_up(qp, kGIDB, QPN{9});
  device.request_notification(cq, NotifyOn::kAnyCompletion, kStart);
  EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kError), kStart), Status::kOk);
  EXPECT_EQ(device.post_send(qp, {}, kStart), PostError::kOk);
  EXPECT_EQ(device.destroy_qp(qp), Status::kOk);
  EXPECT_EQ(device.destroy_cq(cq), Status::kOk);
  EXPECT_FALSE(device.poll_completion_event().has_value());
}

TEST_F(DeviceTest, CQOverrunTakesTheQPToError) {
  CompletionQueue* const cq = device.create_cq(1, nullptr).value();
  QPInit init = node.init(QPType::kUC);
  init.send_cq = cq;
  QueuePair* const qp = device.create_qp(init).value();
  node.bring_up(qp, kGIDB, QPN{9});
  SendWR wr;
  wr.signaled = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
  EgressFrame frame;
  while (device.poll_frame(kStart, frame)) continue;
  EXPECT_TRUE(device.overrun(cq));
  EXPECT_EQ(node.state(qp), QPState::kError);
  const std::optional<AsyncEvent> first = device.poll_async_event();
  const std::optional<AsyncEvent> second = device.poll_async_event();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->type, AsyncEventType::kCQError);
  EXPECT_EQ(first->cq, cq);
  EXPECT_EQ(second->type, AsyncEventType::kQPFatal);
  EXPECT_EQ(second->qp, qp);
  CQE cqe;
  EXPECT_EQ(device.poll_cq(cq, {&cqe, 1}), 1u);  // what was there can still be taken
  EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kBadState) << "no CQE could report it";
  EXPECT_EQ(device.post_receive(qp, {}, kStart), PostError::kOk) << "this CQ works";
}

TEST_F(DeviceTest, AQPThatCompletesAtAFailedCQFails) {
  QPInit init = node.init(QPType::kRC);
  init.receive_cq = device.create_cq(1, nullptr).value();
  QueuePair* const qp = device.create_qp(init).value();
  device.overrun_cq(init.receive_cq, kStart);
  EXPECT_EQ(node.bring_up(qp, kGIDB, QPN{9}), QPState::kRTS);
  EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kError), kStart), Status::kOk);
  EXPECT_EQ(device.post_receive(qp, {}, kStart), PostError::kBadState);
  EXPECT_EQ(device.post_last_send(qp, {}, kStart), PostError::kOk);
  EXPECT_TRUE(node.completion().has_value()) << "flushed";
}

// Programs post until the queue is full, and poll then. Cards allow that.
TEST(DeviceQueueEntriesTest, SendsAreFreeWhenTheirCQEsArePolled) {
  for (const QPType type : {QPType::kRC, QPType::kUC}) {
    Wire wire;
    const Wire::Ends ends = wire.connect(type);
    const auto post = [&](bool signaled) {
      SendWR wr;
      wr.op = SendOp::kRDMAWrite;
      wr.signaled = signaled;
      return wire.a.device.post_send(ends.a, wr, wire.now);
    };
    for (u32 i = 0; i < 64; ++i) ASSERT_EQ(post(i % 32 == 31), PostError::kOk) << i;
    wire.run();
    EXPECT_EQ(post(true), PostError::kQueueFull);
    ASSERT_TRUE(wire.a.completion().has_value());
    for (u32 i = 0; i < 32; ++i) EXPECT_EQ(post(false), PostError::kOk) << i;
    EXPECT_EQ(post(true), PostError::kQueueFull);
    ASSERT_EQ(wire.a.device.modify_qp(ends.a, to_state(QPState::kReset), wire.now), Status::kOk);
    ASSERT_EQ(wire.a.bring_up(ends.a, kGIDB, wire.b.number(ends.b)), QPState::kRTS);
    EXPECT_EQ(post(true), PostError::kOk) << "Reset frees all";
  }
}

struct SRQEntriesTest : ::testing::TestWithParam<QPType> {
  void SetUp() override {
    srq = wire.b.device.create_srq({.pd = wire.b.pd, .limits = {.depth = 2, .max_sge = 1}}).value();
    connect();
  }
  void connect() {
    QPInit init = wire.b.init(GetParam());
    init.srq = srq;
    to = wire.b.device.create_qp(init).value();
    from = wire.a.create(GetParam());
    ASSERT_EQ(wire.a.bring_up(from, kGIDB, wire.b.number(to)), QPState::kRTS);
    ASSERT_EQ(wire.b.bring_up(to, kGIDA, wire.a.number(from)), QPState::kRTS);
  }
  PostError post_receive() {
    const SGE room = wire.b.sge(0, 8192);
    return wire.b.device.post_srq_receive(srq, {.wr_id = 0, .sg_list = {&room, 1}}, wire.now);
  }
  void send(u32 length = 0) {
    const SGE data = wire.a.sge(0, length);
    SendWR wr;
    wr.sg_list = {&data, 1};
    ASSERT_EQ(wire.a.device.post_send(from, wr, wire.now), PostError::kOk);
  }
  // Delivers the first packet of a message of several, so that the QP holds a receive.
  void send_first_packet() {
    send(4000);
    EgressFrame frame;
    ASSERT_TRUE(wire.a.device.poll_frame(wire.now, frame));
    const std::vector<u8> bytes = test::on_the_wire(frame);
    wire.b.device.on_frame(test::received(frame, bytes), wire.now);
  }
  void expect_room_for(u32 count) {
    for (u32 i = 0; i < count; ++i) EXPECT_EQ(post_receive(), PostError::kOk) << i;
    EXPECT_EQ(post_receive(), PostError::kQueueFull);
  }

  Wire wire;
  SharedReceiveQueue* srq = nullptr;
  QueuePair *to = nullptr, *from = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Services, SRQEntriesTest, ::testing::Values(QPType::kRC, QPType::kUC));

TEST_P(SRQEntriesTest, AreFreeWhenTheirCQEsArePolled) {
  expect_room_for(2);
  send();
  wire.run();
  EXPECT_EQ(post_receive(), PostError::kQueueFull);
  ASSERT_TRUE(wire.b.completion().has_value());
  expect_room_for(1);
}

TEST_P(SRQEntriesTest, AreFreeWhenTheQPGoes) {
  expect_room_for(2);
  send();
  wire.run();
  send_first_packet();
  ASSERT_EQ(wire.b.device.destroy_qp(to), Status::kOk);  // with a CQE, and a receive it holds
  expect_room_for(2);
}

TEST_P(SRQEntriesTest, AreFreeWhenTheQPIsReset) {
  expect_room_for(2);
  send();
  wire.run();
  send_first_packet();
  ASSERT_EQ(wire.b.device.modify_qp(to, to_state(QPState::kReset), wire.now), Status::kOk);
  expect_room_for(2);
}

// SQD: what is posted waits; the event comes when asked for. IBTA 10.3.1.5
TEST_F(DeviceTest, DrainedSendQueueTellsAndGoesOnInRTS) {
  for (const QPType type : {QPType::kRC, QPType::kUC, QPType::kUD}) {
    QueuePair* const qp = node.create(type);
    node.bring_up(qp, kGIDB, QPN{9});
    QPModify drain = to_state(QPState::kSQD);
    drain.set(QPField::kEnableSQDNotify).enable_sqd_notify = true;
    EXPECT_EQ(device.modify_qp(qp, drain, kStart), Status::kOk);
    const std::optional<AsyncEvent> event = device.poll_async_event();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, AsyncEventType::kSQDrained);
    EXPECT_EQ(event->qp, qp);
    SendWR wr;
    wr.destination = path_to(kGIDB);
    EXPECT_EQ(device.post_send(qp, wr, kStart), PostError::kOk);
    EgressFrame frame;
    EXPECT_FALSE(device.poll_frame(kStart, frame));
    EXPECT_EQ(device.modify_qp(qp, to_state(QPState::kRTS), kStart), Status::kOk);
    EXPECT_TRUE(device.poll_frame(kStart, frame));
    EXPECT_FALSE(device.poll_async_event().has_value());
  }
}

TEST_F(DeviceTest, CountersKeepWhatDestroyedQPsCounted) {
  Wire wire;
  const Wire::Ends ends = wire.connect(QPType::kUC);
  const SGE sge = wire.a.sge(0, 8);
  SendWR wr;
  wr.sg_list = {&sge, 1};
  EXPECT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
  wire.run();  // nothing is posted at the other end: dropped
  EXPECT_EQ(wire.b.device.counters().transport.rx_dropped, 1u);
  EXPECT_EQ(wire.b.device.destroy_qp(ends.b), Status::kOk);
  EXPECT_EQ(wire.b.device.counters().transport.rx_dropped, 1u);
}

}  // namespace
}  // namespace verbena
