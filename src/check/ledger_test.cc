#include "check/ledger.h"

#include <gtest/gtest.h>

#include <array>

namespace verbena::check {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    ledger.on_cq(&cq, 4);
    ledger.on_qp(qp, {.pd = kPD, .send_cq = &cq, .receive_cq = &cq, .send_depth = 3});
    ledger.on_region(&device, kKey,
                     {.pd = kPD,
                      .memory = memory.data(),
                      .length = memory.size(),
                      .iova = 0x1000,
                      .registered = {}});
  }
  // Each call from a place of its own, so that no finding is suppressed as a repetition.
  Site here() {
    Site site;
    site.frames[0] = reinterpret_cast<const void*>(++places_);
    site.count = 1;
    return site;
  }
  void send(u64 wr_id, bool signaled, LKey key = kKey) {
    const SGE sge{.address = 0x1000, .length = 32, .l_key = key};
    SendWR wr;
    wr.wr_id = wr_id;
    wr.signaled = signaled;
    wr.sg_list = {&sge, 1};
    ledger.on_send(qp, wr, written, here());
  }
  void receive(u64 wr_id) {
    const SGE sge{.address = 0x1020, .length = 32, .l_key = kKey};
    ledger.on_receive(qp, {.wr_id = wr_id, .sg_list = {&sge, 1}}, here());
  }
  void complete(u64 wr_id, CompletionOp op = CompletionOp::kSend,
                WQEStatus status = WQEStatus::kSuccess) {
    CQE cqe;
    cqe.wr_id = wr_id;
    cqe.op = op;
    cqe.status = status;
    cqe.qp = qp.qpn;
    ledger.on_polled(&device, cqe, written, here());
  }
  std::vector<Kind> found() {
    std::vector<Kind> kinds;
    while (const auto finding = ledger.poll_finding()) kinds.push_back(finding->kind);
    return kinds;
  }
  using Kinds = std::vector<Kind>;

  static constexpr PDId kPD{7};
  static constexpr LKey kKey{0x100};
  int device = 0, cq = 0;
  WriteLog written;
  std::array<u8, 64> memory{};
  const QPName qp{&device, QPN{17}};
  Ledger ledger{Settings{.overlaps = true}};

 private:
  std::uintptr_t places_ = 0;
};

TEST_F(LedgerTest, ABufferIsTheDevicesUntilItsCompletion) {
  send(1, true);
  memory[3] = 1;
  complete(1);
  EXPECT_EQ(found(), Kinds{Kind::kSendBufferChanged});
  memory[3] = 2;
  send(2, true);
  complete(2);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, UnsignaledWorkCompletesWithALaterOne) {
  send(1, false);
  memory[0] = 9;
  send(2, true);
  complete(2);
  EXPECT_EQ(found(), Kinds{Kind::kSendBufferChanged});
}

TEST_F(LedgerTest, AfterAnAnswerFromThePeerABufferMayChange) {
  receive(9);
  send(1, false);
  complete(9, CompletionOp::kReceive);
  memory[0] = 9;
  send(2, true);
  complete(2);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, WhatAReceiveMayHaveChangedIsNotTheProgramsDoing) {
  const SGE sge{.address = 0x1000, .length = 8, .l_key = kKey};
  ledger.on_receive(qp, {.wr_id = 9, .sg_list = {&sge, 1}}, here());
  send(1, true);
  memory[0] = 9;
  complete(1);
  EXPECT_EQ(found(), Kinds{});
}

// A receive or READ that ends first: its data was not there when the send was posted.
TEST_F(LedgerTest, NorIsWhatAnEndedOneHasChanged) {
  const SGE sge{.address = 0x1000, .length = 8, .l_key = kKey};
  SendWR read;
  read.wr_id = 1;
  read.op = SendOp::kRDMARead;
  read.signaled = true;
  read.sg_list = {&sge, 1};
  ledger.on_send(qp, read, written, here());
  send(2, true);  // fenced, say
  memory[0] = 9;
  complete(1, CompletionOp::kRDMARead);
  complete(2);
  EXPECT_EQ(found(), Kinds{});

  send(3, true);
  ledger.on_send(qp, read, written, here());
  memory[0] = 10;
  complete(3);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, NorWhatAPeerMayHaveWritten) {
  send(1, true);
  memory[0] = 9;
  written.add({memory.data(), 1});
  complete(1);
  EXPECT_EQ(found(), Kinds{});
  send(2, true);
  memory[0] = 10;
  written.add({memory.data() + 32, 8});  // elsewhere
  complete(2);
  EXPECT_EQ(found(), Kinds{Kind::kSendBufferChanged});
}

TEST_F(LedgerTest, MemoryIsNotLookedAtAfterItsRegionHasGone) {
  send(1, true);
  receive(2);
  complete(2, CompletionOp::kReceive);  // the program has heard of the send's arrival, perhaps
  ledger.on_deregister(&device, kKey, here());
  memory[0] = 9;
  complete(1);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, AFailedSendIsNotCompared) {
  send(1, true);
  memory[0] = 9;
  complete(1, CompletionOp::kSend, WQEStatus::kFlushed);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, OneThingIsSaidOnceForEachPlace) {
  const Site place = here();
  for (int i = 0; i < 2; ++i) ledger.on_refused(qp, PostError::kBadState, QPState::kInit, place);
  EXPECT_EQ(found(), Kinds{Kind::kWrongState});
  ledger.on_refused(qp, PostError::kBadState, QPState::kInit, here());
  EXPECT_EQ(found(), Kinds{Kind::kWrongState});
}

TEST_F(LedgerTest, AQueueOfUnsignaledWorkIsFullForGood) {
  for (u64 i = 0; i < 3; ++i) send(i, false);
  EXPECT_EQ(found(), Kinds{});
  send(3, false);
  EXPECT_EQ(found(), Kinds{Kind::kUnreclaimable});
}

TEST_F(LedgerTest, ACQHasRoomForAllThatMayComplete) {
  for (u64 i = 0; i < 2; ++i) send(i, true);
  for (u64 i = 0; i < 2; ++i) receive(i);
  complete(0);
  send(2, true);
  const Kinds overlaps{Kind::kOverlap};  // of the receives
  EXPECT_EQ(found(), overlaps);
  send(3, true);
  EXPECT_EQ(found(), Kinds{Kind::kCQTooSmall});
}

TEST_F(LedgerTest, AQueuePairThatGoesFreesItsPlacesInTheCQ) {
  for (u64 i = 0; i < 4; ++i) receive(i);
  ledger.on_qp_gone(qp);
  ledger.on_qp(qp, {.pd = kPD, .send_cq = &cq, .receive_cq = &cq, .send_depth = 3});
  static_cast<void>(found());
  send(1, true);
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, KeysAreThoseOfTheQueuePairsDomain) {
  ledger.on_region(
      &device, LKey{0x200},
      {.pd = PDId{8}, .memory = memory.data(), .length = 64, .iova = 0x1000, .registered = {}});
  send(1, true, LKey{0x200});
  EXPECT_EQ(found(), Kinds{Kind::kOtherDomain});
  send(2, true, LKey{0x300});
  EXPECT_EQ(found(), Kinds{Kind::kUnknownKey});
}

TEST_F(LedgerTest, ARegionIsInUseUntilItsWorkHasCompletedOrFailed) {
  receive(1);
  ledger.on_deregister(&device, kKey, here());
  EXPECT_EQ(found(), Kinds{Kind::kRegionInUse});
  ledger.on_region(
      &device, kKey,
      {.pd = kPD, .memory = memory.data(), .length = 64, .iova = 0x1000, .registered = {}});
  ledger.on_qp_state(qp, QPState::kError);
  ledger.on_deregister(&device, kKey, here());
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, AQueuePairThatGoesMayTakeReceivesOfASharedQueueWithIt) {
  int srq = 0;
  ledger.on_srq(&srq, &device, kPD, 1);
  const QPName others[] = {{&device, QPN{18}}, {&device, QPN{19}}};
  for (const QPName& name : others)
    ledger.on_qp(name, {.pd = kPD, .send_cq = &cq, .receive_cq = &cq, .srq = &srq});
  const SGE sge{.address = 0x1000, .length = 8, .l_key = kKey};
  ledger.on_srq_receive(&srq, {.wr_id = 1, .sg_list = {&sge, 1}}, here());
  EXPECT_EQ(ledger.users_of(&device, kKey).size(), 2u);
  ledger.on_qp_gone(others[0]);
  ledger.on_deregister(&device, kKey, here());
  for (u64 i = 0; i < 9; ++i) ledger.on_srq_receive(&srq, {.wr_id = i, .sg_list = {}}, here());
  EXPECT_EQ(found(), Kinds{});
}

TEST_F(LedgerTest, AnInvalidatedKeyIsOfNoUseUntilThePeerSpeaks) {
  SendWR invalidation, write;
  invalidation.op = SendOp::kSendWithInvalidate;
  invalidation.invalidate = RKey{5};
  write.wr_id = 1;
  write.op = SendOp::kRDMAWrite;
  write.r_key = RKey{5};
  write.signaled = true;
  ledger.on_send(qp, invalidation, written, here());
  ledger.on_send(qp, write, written, here());
  complete(1, CompletionOp::kRDMAWrite);  // the peer has bound it again, and said so elsewhere
  EXPECT_EQ(found(), Kinds{});
  ledger.on_send(qp, write, written, here());
  complete(1, CompletionOp::kRDMAWrite, WQEStatus::kRemoteAccess);
  EXPECT_EQ(found(), Kinds{Kind::kInvalidatedKey});
  receive(2);
  complete(2, CompletionOp::kReceive);
  ledger.on_send(qp, write, written, here());
  complete(1, CompletionOp::kRDMAWrite, WQEStatus::kRemoteAccess);
  EXPECT_EQ(found(), Kinds{});
}

TEST(SettingsTest, Words) {
  EXPECT_TRUE(parse_settings("1").has_value());
  EXPECT_TRUE(parse_settings("fatal,leaks")->fatal);
  EXPECT_TRUE(parse_settings("fatal,leaks")->leaks);
  EXPECT_FALSE(parse_settings("fatal,leaks")->overlaps);
  EXPECT_FALSE(parse_settings("every").has_value());
  EXPECT_EQ(parse_exit_code("255"), 255);
  EXPECT_FALSE(parse_exit_code("256").has_value());
  EXPECT_FALSE(parse_exit_code("-1").has_value());
  EXPECT_FALSE(parse_exit_code("").has_value());
}

}  // namespace
}  // namespace verbena::check
