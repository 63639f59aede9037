// Tests the errors of a stream, and the TERMINATE that reports each. RFC 5040, 4.8; RFC 5041, 8;
// RFC 5044, 8. A hand-written peer sends the bytes.
#include <gtest/gtest.h>

#include "transport/iwarp/iwarp_pair_for_test.h"

namespace verbena::iwarp {
namespace {

using test::End;
using test::EndOptions;
using test::kIova;
using test::kNow;
using test::Pair;

struct TerminateTest : ::testing::Test {
  TerminateTest() { us.begin({.atomics_and_immediate = true, .ird = 2, .ord = 2}); }

  void tagged(RDMAPOpcode opcode, u32 stag, u64 to, std::size_t payload, bool last = true) {
    std::vector<u8> ulpdu(kTaggedHeader + payload);
    DDPTagged{.last = last, .control = control_of(opcode), .stag = stag, .offset = to}.encode(
        std::span(ulpdu).first<kTaggedHeader>());
    append_fpdu(ulpdu, CRCUse::kUsed, wire);
  }
  void untagged(u8 control, u32 queue, u32 msn, u32 mo, std::span<const u8> payload,
                bool last = true) {
    std::vector<u8> ulpdu(kUntaggedHeader);
    DDPUntagged{.last = last, .control = control, .queue = queue, .message = msn, .offset = mo}
        .encode(std::span(ulpdu).first<kUntaggedHeader>());
    ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
    append_fpdu(ulpdu, CRCUse::kUsed, wire);
  }
  void read_request(RDMAPReadRequest read, u32 msn = 1) {
    std::array<u8, RDMAPReadRequest::kSize> bytes{};
    read.encode(bytes);
    untagged(control_of(RDMAPOpcode::kReadRequest), kReadQueueNumber, msn, 0, bytes);
  }
  // The reason of the TERMINATE that comes out, with the QP in Error; nullopt: none does.
  std::optional<TerminateReason> answer() {
    us.take(wire);
    StreamGather gather;
    us.engine->gather(gather, kNow);
    us.drain();
    std::vector<u8> bytes;
    gather.visit_range(0, gather.bytes(),
                       [&](Bytes b) { bytes.insert(bytes.end(), b.begin(), b.end()); });
    us.engine->on_sent(gather, gather.bytes(), kNow);
    us.drain();
    Bytes rest(bytes);
    while (!rest.empty()) {
      const FPDUView fpdu = FPDUView::decode(rest, CRCUse::kUsed);
      EXPECT_EQ(fpdu.status, FPDUView::Status::kWhole);
      if (fpdu.status != FPDUView::Status::kWhole) return std::nullopt;
      rest = rest.subspan(fpdu.size);
      const std::optional<DDPUntagged> ddp = DDPUntagged::decode(fpdu.ulpdu);
      if (!ddp || opcode_of(ddp->control) != RDMAPOpcode::kTerminate) continue;
      EXPECT_TRUE(rest.empty());
      EXPECT_TRUE(ddp->last);
      EXPECT_EQ(ddp->queue, kTerminateQueueNumber);
      EXPECT_EQ(ddp->message, 1u);
      EXPECT_EQ(us.qp.state, QPState::kError);
      EXPECT_TRUE(us.engine->wants_end());
      const auto message = RDMAPTerminate::decode(fpdu.ulpdu.subspan(kUntaggedHeader));
      return TerminateReason{message->layer, message->type, message->code};
    }
    return std::nullopt;
  }
  bool untouched() const {
    return std::ranges::all_of(us.buffer, [](u8 b) { return b == 0; });
  }

  End us{QPN{0x11}};
  std::vector<u8> wire;
  const u32 own_stag = us.keys.r_key.value;
};

struct WithoutRights : TerminateTest {
  WithoutRights() { us.qp.remote_access = {}; }
};

TEST_F(TerminateTest, GoodMessagesHaveNone) {
  us.post_receive(1, {us.sge(0, 10)});
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 100);
  untagged(control_of(RDMAPOpcode::kSend), 0, 1, 0, std::vector<u8>(10));
  read_request({.length = 10, .source_stag = own_stag, .source_offset = kIova});
  EXPECT_EQ(answer(), std::nullopt);
  EXPECT_EQ(us.qp.state, QPState::kRTS);
  EXPECT_EQ(us.received.size(), 1u);
}

TEST_F(TerminateTest, WriteWithABadSTag) {
  tagged(RDMAPOpcode::kWrite, own_stag + 0x100, kIova, 100);
  EXPECT_EQ(answer(), reason::kTaggedInvalidSTag);
  EXPECT_TRUE(untouched());
}
TEST_F(TerminateTest, WriteOutOfBounds) {
  tagged(RDMAPOpcode::kWrite, own_stag, kIova + us.buffer.size() - 99, 100);
  EXPECT_EQ(answer(), reason::kTaggedBounds);
  EXPECT_TRUE(untouched());
}
TEST_F(TerminateTest, WriteThatWraps) {
  tagged(RDMAPOpcode::kWrite, own_stag, ~u64{0} - 10, 100);
  EXPECT_EQ(answer(), reason::kTaggedOffsetWraps);
}
TEST_F(WithoutRights, Write) {
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 100);
  EXPECT_EQ(answer(), reason::kAccessRights);
  EXPECT_TRUE(untouched());
}
TEST_F(WithoutRights, Read) {
  read_request({.length = 10, .source_stag = own_stag, .source_offset = kIova});
  EXPECT_EQ(answer(), reason::kAccessRights);
}
TEST_F(TerminateTest, ReadWithABadSTag) {
  read_request({.length = 10, .source_stag = own_stag + 0x100, .source_offset = kIova});
  EXPECT_EQ(answer(), reason::kInvalidSTag);
}
TEST_F(TerminateTest, ReadOutOfBounds) {
  read_request({.length = 10, .source_stag = own_stag, .source_offset = kIova - 1});
  EXPECT_EQ(answer(), reason::kBounds);
}
TEST_F(TerminateTest, ReadThatWraps) {
  read_request({.length = 100, .source_stag = own_stag, .source_offset = ~u64{0} - 10});
  EXPECT_EQ(answer(), reason::kOffsetWraps);
}
TEST_F(TerminateTest, TooManyReads) {
  for (u32 msn = 1; msn <= 4; ++msn)
    read_request({.length = 10, .source_stag = own_stag, .source_offset = kIova}, msn);
  EXPECT_EQ(answer(), reason::kNoBuffer);
}
TEST_F(TerminateTest, AReadResponseNobodyAskedFor) {
  tagged(RDMAPOpcode::kReadResponse, own_stag, kIova, 100);
  EXPECT_EQ(answer(), reason::kTaggedInvalidSTag);
  EXPECT_TRUE(untouched());
}
TEST_F(TerminateTest, SendWithoutAReceive) {
  untagged(control_of(RDMAPOpcode::kSend), 0, 1, 0, {});
  EXPECT_EQ(answer(), reason::kNoBuffer);
}
TEST_F(TerminateTest, SendThatIsTooLong) {
  us.post_receive(1, {us.sge(0, 10)});
  untagged(control_of(RDMAPOpcode::kSend), 0, 1, 0, std::vector<u8>(11));
  EXPECT_EQ(answer(), reason::kMessageTooLong);
  ASSERT_EQ(us.received.size(), 1u);
  EXPECT_EQ(us.received[0].status, WQEStatus::kLocalLength);
}
TEST_F(TerminateTest, WrongQueueNumber) {
  untagged(control_of(RDMAPOpcode::kSend), 3, 1, 0, {});
  EXPECT_EQ(answer(), reason::kInvalidQueue);
}
TEST_F(TerminateTest, WrongMessageNumber) {
  us.post_receive(1, {us.sge(0, 10)});
  untagged(control_of(RDMAPOpcode::kSend), 0, 2, 0, {});
  EXPECT_EQ(answer(), reason::kInvalidMSN);
}
TEST_F(TerminateTest, WrongMessageOffset) {
  us.post_receive(1, {us.sge(0, 10)});
  untagged(control_of(RDMAPOpcode::kSend), 0, 1, 4, {});
  EXPECT_EQ(answer(), reason::kInvalidMO);
}
TEST_F(TerminateTest, WrongRDMAPVersion) {
  untagged(0x03, 0, 1, 0, {});
  EXPECT_EQ(answer(), reason::kRDMAPVersion);
}
TEST_F(TerminateTest, UnknownOpcode) {
  untagged(0x4f, 0, 1, 0, {});
  EXPECT_EQ(answer(), reason::kUnexpectedOpcode);
}
TEST_F(TerminateTest, AnUntaggedWrite) {
  untagged(control_of(RDMAPOpcode::kWrite), 0, 1, 0, {});
  EXPECT_EQ(answer(), reason::kUnexpectedOpcode);
}
TEST_F(TerminateTest, WrongDDPVersion) {
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 0);
  wire[2] = static_cast<u8>((wire[2] & ~3) | 2);
  EXPECT_EQ(answer(), reason::kTaggedVersion);
}
TEST_F(TerminateTest, AWrongCRC) {
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 100);
  wire.back() ^= 1;
  EXPECT_EQ(answer(), reason::kBadCRC);
  EXPECT_TRUE(untouched());
}
TEST_F(TerminateTest, AWrongCRCOfALongSegmentLeavesItsLastBytes) {
  std::ranges::fill(us.buffer, u8{0xff});
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 9000);
  wire.back() ^= 1;
  us.take(Bytes(wire).first(500));
  wire.erase(wire.begin(), wire.begin() + 500);
  EXPECT_EQ(answer(), reason::kBadCRC);
  EXPECT_EQ(us.buffer[9000 - SegmentReader::kTail - 1], 0);
  EXPECT_EQ(us.buffer[9000 - SegmentReader::kTail], 0xff);
}
TEST_F(TerminateTest, ALengthThatLies) {
  wire = {0, 5, 0xc1, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(answer(), reason::kBadLength);
}
TEST_F(TerminateTest, InvalidateOfARegion) {
  us.post_receive(1, {us.sge(0, 10)});
  std::vector<u8> ulpdu(kUntaggedHeader);
  DDPUntagged{.last = true,
              .control = control_of(RDMAPOpcode::kSendInvalidate),
              .invalidate_stag = own_stag,
              .message = 1}
      .encode(std::span(ulpdu).first<kUntaggedHeader>());
  append_fpdu(ulpdu, CRCUse::kUsed, wire);
  EXPECT_EQ(answer(), reason::kCannotInvalidate);
}

// Bytes after the fault mean nothing.
TEST_F(TerminateTest, NothingIsTakenAfterAFault) {
  tagged(RDMAPOpcode::kWrite, 0, kIova, 100);
  tagged(RDMAPOpcode::kWrite, own_stag, kIova, 100);
  wire.resize(wire.size() + 10'000, 0xaa);
  EXPECT_EQ(answer(), reason::kTaggedInvalidSTag);
  EXPECT_TRUE(untouched());
}

TEST(TerminateReceived, FailsTheReadThatItRefuses) {
  Pair pair;
  pair.begin();
  pair.b.qp.remote_access = {};
  SendWR wr;
  wr.wr_id = 1;
  wr.op = SendOp::kRDMARead;
  wr.remote_address = kIova;
  wr.r_key = pair.b.keys.r_key;
  EXPECT_EQ(pair.a.post(wr, {pair.a.sge(0, 10)}), PostError::kOk);
  wr.wr_id = 2;
  EXPECT_EQ(pair.a.post(wr, {pair.a.sge(0, 10)}), PostError::kOk);
  pair.run();
  ASSERT_EQ(pair.a.sent.size(), 2u);
  EXPECT_EQ(pair.a.sent[0].status, WQEStatus::kRemoteAccess);
  EXPECT_EQ(pair.a.sent[1].status, WQEStatus::kFlushed);
  EXPECT_EQ(pair.a.engine->received_terminate(), reason::kAccessRights);
  EXPECT_EQ(pair.b.engine->sent_terminate(), reason::kAccessRights);
  EXPECT_EQ(pair.a.engine->sent_terminate(), std::nullopt) << "a TERMINATE is not answered";
  EXPECT_EQ(pair.a.engine->fault().stream.what, StreamFault::What::kTerminatedByPeer);
  EXPECT_TRUE(pair.a.engine->wants_end());
}

// The requester's own mistake: its key is no key.
TEST(TerminateSent, ForOwnMemoryThatIsGone) {
  Pair pair;
  pair.begin();
  pair.b.post_receive(1, {pair.b.sge(0, 10)});
  SendWR wr;
  wr.wr_id = 1;
  EXPECT_EQ(pair.a.post(wr, {SGE{kIova, 10, LKey{1}}}), PostError::kOk);
  pair.run();
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.a.sent[0].status, WQEStatus::kLocalProtection);
  EXPECT_EQ(pair.b.engine->received_terminate(), reason::kLocalCatastrophic);
  ASSERT_EQ(pair.b.received.size(), 1u);
  EXPECT_EQ(pair.b.received[0].status, WQEStatus::kFlushed);
}

}  // namespace
}  // namespace verbena::iwarp
