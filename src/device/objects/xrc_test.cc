// XRC through two devices: an initiator that sends to any SRQ of its target's domain. IBTA A14.
#include <gtest/gtest.h>

#include "device/testing.h"

namespace verbena {
namespace {

using test::kGIDA;
using test::kGIDB;

struct XRCTest : ::testing::Test {
  XRCTest() {
    xrcd = b.device.open_xrcd().value();
    target = create_target(xrcd);
    initiator = a.create(QPType::kXRCInitiator);
    EXPECT_EQ(a.bring_up(initiator, kGIDB, b.number(target)), QPState::kRTS);
    EXPECT_EQ(b.bring_up(target, kGIDA, a.number(initiator)), QPState::kRTS);
  }
  QueuePair* create_target(XRCDomain* domain) {
    return b.device.create_qp({.type = QPType::kXRCTarget, .xrcd = domain}).value();
  }
  SharedReceiveQueue* create_srq(XRCDomain* domain) { return create_srq(domain, b.pd, b.cq); }
  SharedReceiveQueue* create_srq(XRCDomain* domain, ProtectionDomain* pd, CompletionQueue* cq) {
    return b.device
        .create_srq({.pd = pd, .limits = {.depth = 8, .max_sge = 1}, .xrcd = domain, .cq = cq})
        .value();
  }
  u32 number(const SharedReceiveQueue* srq) const { return b.device.number_of(srq); }
  void post_receive(SharedReceiveQueue* srq, u64 wr_id, u32 offset = 0) {
    const SGE room = b.sge(offset, 4096);
    EXPECT_EQ(b.device.post_srq_receive(srq, {.wr_id = wr_id, .sg_list = {&room, 1}}, wire.now),
              PostError::kOk);
  }
  SendWR request(SendOp op, u32 srq_number) const {
    SendWR wr;
    wr.wr_id = 77;
    wr.op = op;
    wr.signaled = true;
    wr.remote_address = b.address() + 8192;
    wr.r_key = b.keys.r_key;
    wr.xrc_srq = srq_number;
    return wr;
  }
  void send(SendOp op, u32 srq_number, u32 length = 64) {
    const SGE data = a.sge(0, length);
    SendWR wr = request(op, srq_number);
    wr.sg_list = {&data, 1};
    EXPECT_EQ(a.device.post_send(initiator, wr, wire.now), PostError::kOk);
    wire.run();
  }
  WQEStatus sent() {
    const std::optional<CQE> cqe = a.completion();
    EXPECT_TRUE(cqe.has_value());
    return cqe.value_or(CQE{}).status;
  }

  test::Wire wire;
  test::Node& a = wire.a;
  test::Node& b = wire.b;
  XRCDomain* xrcd = nullptr;
  QueuePair* target = nullptr;
  QueuePair* initiator = nullptr;
};

TEST_F(XRCTest, TheRequestNamesTheSRQ) {
  SharedReceiveQueue* const first = create_srq(xrcd);
  SharedReceiveQueue* const second = create_srq(xrcd);
  ASSERT_NE(number(first), number(second));
  post_receive(first, 1);
  post_receive(second, 2, 4096);
  a.memory[5] = 42;
  send(SendOp::kSend, number(second), 3000);
  EXPECT_EQ(sent(), WQEStatus::kSuccess);
  const std::optional<CQE> cqe = b.completion();
  ASSERT_TRUE(cqe.has_value());
  EXPECT_EQ(cqe->wr_id, 2u);
  EXPECT_EQ(cqe->byte_length, 3000u);
  EXPECT_EQ(cqe->qp, b.number(target));
  EXPECT_EQ(cqe->srq, number(second));
  EXPECT_EQ(b.memory[4096 + 5], 42);
  send(SendOp::kRDMAWriteWithImmediate, number(first));
  EXPECT_EQ(sent(), WQEStatus::kSuccess);
  EXPECT_EQ(b.completion().value().wr_id, 1u);
}

TEST_F(XRCTest, OnTheWireRequestsHaveAnXRCETHAndItsOpCodes) {
  const u32 srq = number(create_srq(xrcd));
  const SGE data = a.sge(0, 8);
  SendWR wr = request(SendOp::kRDMAWrite, srq);
  wr.sg_list = {&data, 1};
  ASSERT_EQ(a.device.post_send(initiator, wr, wire.now), PostError::kOk);
  EgressFrame frame;
  ASSERT_TRUE(a.device.poll_frame(wire.now, frame));
  EXPECT_EQ(frame.headers[0], 0xaa);
  const std::vector<u8> bytes = test::on_the_wire(frame);
  const auto packet = PacketView::decode(std::span(bytes).first(bytes.size() - kICRCSize));
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(packet->headers.xrceth.xrc_srq, srq);
  b.device.on_frame(test::received(frame, bytes), wire.now);
  ASSERT_TRUE(b.device.poll_frame(wire.now, frame));
  EXPECT_EQ(frame.headers[0], 0xb1);  // XRC Acknowledge
}

TEST_F(XRCTest, READsWRITEsAndAtomicsUseThePDOfTheSRQ) {
  const u32 srq = number(create_srq(xrcd));
  for (const SendOp op : {SendOp::kRDMAWrite, SendOp::kRDMARead, SendOp::kFetchAdd}) {
    send(op, srq, 8);
    EXPECT_EQ(sent(), WQEStatus::kSuccess);
  }
  ProtectionDomain* const other = b.device.alloc_pd().value();
  send(SendOp::kRDMAWrite, number(create_srq(xrcd, other, b.cq)), 8);
  EXPECT_EQ(sent(), WQEStatus::kRemoteAccess);
}

TEST_F(XRCTest, ReceivesCompleteAtTheCQOfTheSRQ) {
  int user = 0;
  CompletionQueue* const cq = b.device.create_cq(8, &user).value();
  SharedReceiveQueue* const srq = create_srq(xrcd, b.pd, cq);
  b.device.request_notification(cq, NotifyOn::kAnyCompletion, test::kStart);
  post_receive(srq, 9);
  send(SendOp::kSend, number(srq));
  EXPECT_EQ(b.device.poll_completion_event(), &user);
  EXPECT_EQ(b.completion(), std::nullopt);
  CQE cqe;
  EXPECT_EQ(b.device.poll_cq(cq, {&cqe, 1}), 1u);
  EXPECT_EQ(cqe.wr_id, 9u);
}

struct XRCRefusalTest : XRCTest {
  // Both QPs have failed, the initiator by the target's NAK.
  void expect_refused() {
    EXPECT_EQ(sent(), WQEStatus::kRemoteInvalidRequest);
    EXPECT_EQ(b.state(target), QPState::kError);
    EXPECT_EQ(a.state(initiator), QPState::kError);
    const std::optional<AsyncEvent> event = b.device.poll_async_event();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, AsyncEventType::kQPRequestError);
    EXPECT_EQ(event->qp, target);
  }
};

TEST_F(XRCRefusalTest, ANumberOfNoSRQ) {
  (void)create_srq(xrcd);
  send(SendOp::kSend, 0xffffff);
  expect_refused();
}

TEST_F(XRCRefusalTest, AnSRQOfAnotherDomain) {
  SharedReceiveQueue* const srq = create_srq(b.device.open_xrcd().value());
  post_receive(srq, 1);
  send(SendOp::kSend, number(srq));
  expect_refused();
}

TEST_F(XRCRefusalTest, AnSRQThatIsNotXRC) {
  SharedReceiveQueue* const srq =
      b.device.create_srq({.pd = b.pd, .limits = {.depth = 8, .max_sge = 1}}).value();
  post_receive(srq, 1);
  send(SendOp::kSend, number(srq));
  expect_refused();
}

TEST_F(XRCRefusalTest, AnSRQThatIsGoneAndItsSuccessor) {
  SharedReceiveQueue* const gone = create_srq(xrcd);
  const u32 old_number = number(gone);
  ASSERT_EQ(b.device.destroy_srq(gone), Status::kOk);
  post_receive(create_srq(xrcd), 1);
  send(SendOp::kRDMARead, old_number);
  expect_refused();
}

TEST_F(XRCTest, AnEmptySRQIsNotReadyAndTheRequesterTriesAgain) {
  SharedReceiveQueue* const srq = create_srq(xrcd);
  send(SendOp::kSend, number(srq));
  EXPECT_EQ(a.completion(), std::nullopt);
  EXPECT_EQ(a.device.counters().transport.rnr_nak_retry_err, 1u);
  post_receive(srq, 1);
  wire.now = a.device.next_timer();
  a.device.on_timer(wire.now);
  wire.run();
  EXPECT_EQ(sent(), WQEStatus::kSuccess);
  EXPECT_EQ(b.completion().value().wr_id, 1u);
}

TEST_F(XRCTest, TheSRQLimitEvent) {
  SharedReceiveQueue* const srq = create_srq(xrcd);
  post_receive(srq, 1);
  post_receive(srq, 2);
  ASSERT_EQ(b.device.modify_srq(srq, {.limit = 2}), Status::kOk);
  EXPECT_FALSE(b.device.poll_async_event().has_value());
  send(SendOp::kSend, number(srq));
  const std::optional<AsyncEvent> event = b.device.poll_async_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, AsyncEventType::kSRQLimitReached);
  EXPECT_EQ(event->srq, srq);
}

// Half of the message has arrived: its receive was taken, and no object is left to complete it.
TEST_F(XRCTest, AnSRQMayGoWhileAMessageIsOnItsWayIntoIt) {
  SharedReceiveQueue* const srq = create_srq(xrcd);
  const u32 srq_number = number(srq);
  post_receive(srq, 1);
  const SGE data = a.sge(0, 3000);
  SendWR wr = request(SendOp::kSend, srq_number);
  wr.sg_list = {&data, 1};
  ASSERT_EQ(a.device.post_send(initiator, wr, wire.now), PostError::kOk);
  EgressFrame frame;
  ASSERT_TRUE(a.device.poll_frame(wire.now, frame));
  const std::vector<u8> bytes = test::on_the_wire(frame);
  b.device.on_frame(test::received(frame, bytes), wire.now);
  ASSERT_EQ(b.device.destroy_srq(srq), Status::kOk);
  wire.run();
  EXPECT_EQ(b.completion(), std::nullopt);
  EXPECT_EQ(b.device.modify_qp(target, test::to_state(QPState::kError), wire.now), Status::kOk);
  EXPECT_EQ(b.completion(), std::nullopt);
}

TEST_F(XRCTest, AnOverrunOfTheSRQsCQFailsTheTarget) {
  CompletionQueue* const cq = b.device.create_cq(1, nullptr).value();
  SharedReceiveQueue* const srq = create_srq(xrcd, b.pd, cq);
  const u32 capacity = b.device.capacity_of(cq);
  for (u32 i = 0; i <= capacity; ++i) {
    post_receive(srq, i);
    send(SendOp::kSend, number(srq));
  }
  EXPECT_TRUE(b.device.overrun(cq));
  EXPECT_EQ(b.state(target), QPState::kError);
}

TEST_F(XRCTest, EachHalfHasOneQueue) {
  EXPECT_EQ(b.device.post_send(target, request(SendOp::kSend, 1), wire.now), PostError::kBadOpcode);
  EXPECT_NE(b.device.post_receive(target, {}, wire.now), PostError::kOk);
  EXPECT_NE(a.device.post_receive(initiator, {}, wire.now), PostError::kOk);
  EXPECT_EQ(a.device.post_send(initiator, request(SendOp::kSend, 1u << 24), wire.now),
            PostError::kBadDestination);
  EXPECT_EQ(a.device.init_of(initiator).receive.depth, 0u);
  EXPECT_EQ(b.device.init_of(target).send.depth, 0u);
}

// Nothing answers where only questions are asked, and the other way round.
TEST_F(XRCTest, AnInitiatorTakesNoRequestsAndATargetNoResponses) {
  const u32 srq = number(create_srq(xrcd));
  QueuePair* const second = a.create(QPType::kXRCInitiator);
  ASSERT_EQ(a.bring_up(second, kGIDB, b.number(target)), QPState::kRTS);
  QueuePair* const other = b.create(QPType::kXRCInitiator);
  ASSERT_EQ(b.bring_up(other, kGIDA, a.number(second)), QPState::kRTS);
  const SGE data = b.sge(0, 8);
  SendWR wr = request(SendOp::kRDMAWrite, srq);
  wr.sg_list = {&data, 1};
  ASSERT_EQ(b.device.post_send(other, wr, wire.now), PostError::kOk);
  wire.run();
  EXPECT_EQ(a.device.counters().dropped_service, 1u);
  EXPECT_EQ(a.state(second), QPState::kRTS);
}

TEST_F(XRCTest, ADomainStaysWhileItIsUsed) {
  EXPECT_EQ(b.device.close_xrcd(xrcd), Status::kBusy);
  EXPECT_EQ(b.device.destroy_qp(target), Status::kOk);
  SharedReceiveQueue* const srq = create_srq(xrcd);
  EXPECT_EQ(b.device.close_xrcd(xrcd), Status::kBusy);
  EXPECT_EQ(b.device.destroy_cq(b.cq), Status::kBusy);  // the SRQ's
  EXPECT_EQ(b.device.destroy_srq(srq), Status::kOk);
  EXPECT_EQ(b.device.close_xrcd(xrcd), Status::kOk);
  EXPECT_EQ(b.device.destroy_cq(b.cq), Status::kOk);
}

TEST_F(XRCTest, WhatATargetAndAnXRCSRQNeed) {
  EXPECT_EQ(b.device.create_qp({.type = QPType::kXRCTarget}).error(), Status::kInvalidArgument);
  EXPECT_EQ(a.device.create_qp({.type = QPType::kXRCInitiator, .pd = a.pd}).error(),
            Status::kInvalidArgument);
  EXPECT_EQ(b.device.create_srq({.pd = b.pd, .xrcd = xrcd}).error(), Status::kInvalidArgument);
  EXPECT_EQ(b.device.create_srq({.pd = b.pd, .cq = b.cq}).error(), Status::kInvalidArgument);
  EXPECT_EQ(b.device.create_srq({.xrcd = xrcd, .cq = b.cq}).error(), Status::kInvalidArgument);
}

}  // namespace
}  // namespace verbena
