#include "transport/uc/responder.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/pcap.h"
#include "transport/uc/engine.h"
#include "transport/unreliable_test_peer.h"

namespace verbena {
namespace {

using Peer = test::TestPeer<UCEngine>;
using Events = std::vector<EngineEvent>;

// A sender, whose packets each test loses, changes or reorders, and the receiver under test.
class UCResponderTest : public testing::Test {
 protected:
  explicit UCResponderTest(const test::PeerOptions& options = {})
      : to_(QPType::kUC, QPN{2}, QPN{1}, options) {
    std::iota(from_.buffer.begin(), from_.buffer.end(), u8{1});
    from_.to_rts();
    to_.to_rts();
  }
  std::vector<test::PacketBytes> send(u64 length, SendOp op = SendOp::kSend) {
    SendWR wr;
    wr.op = op;
    wr.immediate = 0xcafe;
    wr.remote_address = Peer::kIova + kTarget;
    wr.r_key = to_.keys.r_key;
    EXPECT_EQ(from_.post(wr, {from_.sge(0, length)}), PostError::kOk);
    std::vector<test::PacketBytes> packets = from_.sent();
    EXPECT_TRUE(from_.send_cqes().empty());
    return packets;
  }
  std::vector<test::PacketBytes> write(u64 length) { return send(length, SendOp::kRDMAWrite); }
  void post_receive(u64 wr_id, u64 length) { to_.post_receive(wr_id, {to_.sge(0, length)}); }
  test::Outcomes received() { return test::outcomes(to_.receive_cqes()); }
  bool arrived(u64 at, u64 length) const {
    return to_.bytes_at(at, length) == from_.bytes_at(0, length);
  }
  // Nothing but [at, at + length) is written.
  bool only(u64 at, u64 length) {
    std::fill_n(to_.buffer.begin() + static_cast<std::ptrdiff_t>(at), length, u8{0});
    return to_.untouched();
  }

  static constexpr u64 kTarget = 8192;  // of WRITEs, in the receiver's buffer
  Peer from_{QPType::kUC, QPN{1}, QPN{2}};
  Peer to_;
};

// --- messages that arrive whole

TEST_F(UCResponderTest, SendFillsTheReceiveAndCompletesIt) {
  to_.post_receive(7, {to_.sge(100, 300), to_.sge(1000, 500)});
  const std::vector<test::PacketBytes> packets = send(700);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    EXPECT_TRUE(to_.receive_cqes().empty());
    to_.deliver(packets[i]);
  }
  EXPECT_EQ(to_.receive_cqes(), (std::vector<CQE>{{.wr_id = 7,
                                                   .op = CompletionOp::kReceive,
                                                   .byte_length = 700,
                                                   .qp = QPN{2},
                                                   .source_qp = {}}}));
  EXPECT_EQ(to_.bytes_at(100, 300), from_.bytes_at(0, 300));
  EXPECT_EQ(to_.bytes_at(1000, 400), from_.bytes_at(300, 400));
}

TEST_F(UCResponderTest, ImmediateAndSolicitedReachTheCompletion) {
  post_receive(1, 256);
  std::vector<test::PacketBytes> packets = send(10, SendOp::kSendWithImmediate);
  to_.deliver(test::altered(packets[0], [](PacketHeaders& h) { h.bth.solicited_event = true; }));
  const std::vector<CQE> cqes = to_.receive_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_TRUE(cqes[0].with_immediate);
  EXPECT_TRUE(cqes[0].solicited);
  EXPECT_EQ(cqes[0].immediate, 0xcafeu);
  EXPECT_EQ(cqes[0].byte_length, 10u);
}

TEST_F(UCResponderTest, EmptySendCompletesAReceiveWithoutRoom) {
  to_.post_receive(1, {});
  to_.deliver(send(0));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderTest, WriteFillsItsTargetAndCompletesNothing) {
  post_receive(1, 256);
  to_.deliver(write(1000));
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(arrived(kTarget, 1000));
  EXPECT_TRUE(only(kTarget, 1000));
  EXPECT_EQ(to_.counters().rx_write_requests, 1u);
}

TEST_F(UCResponderTest, WriteWithImmediateCompletesAReceiveWithTheBytesWritten) {
  post_receive(1, 0);
  to_.deliver(send(1000, SendOp::kRDMAWriteWithImmediate));
  const std::vector<CQE> cqes = to_.receive_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0].op, CompletionOp::kReceiveRDMAWithImmediate);
  EXPECT_EQ(cqes[0].byte_length, 1000u);
  EXPECT_EQ(cqes[0].immediate, 0xcafeu);
  EXPECT_TRUE(arrived(kTarget, 1000));
}

// IBTA 9.7.4.1.5: the R_Key of a zero-length WRITE is not checked.
TEST_F(UCResponderTest, EmptyWriteNeedsNoKey) {
  post_receive(1, 0);
  const test::PacketBytes packet = send(0, SendOp::kRDMAWriteWithImmediate)[0];
  to_.deliver(test::altered(packet, [](PacketHeaders& h) { h.reth.r_key = RKey{0}; }));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

// tests/captures/rxe-uc.pcap: the responder accepts the packets of Linux's soft-RoCE; the capture's
// .txt lists the completions.
TEST_F(UCResponderTest, TakesWhatLinuxSends) {
  to_.to(QPState::kReset);
  to_.qp.path_mtu = MTU::k1024;
  to_.qp.rq_psn = PSN{0x0a0000};
  to_.to_rts();
  for (u64 id = 100; id < 104; ++id) post_receive(id, 4096);
  constexpr std::size_t kTransportAt = 42;
  std::vector<CQE> cqes;
  for (const test::CapturedFrame& frame : test::read_capture("rxe-uc.pcap")) {
    test::PacketBytes packet(frame.bytes.begin() + kTransportAt, frame.bytes.end() - kICRCSize);
    if (traits_of(test::headers_of(packet).bth.opcode).reth)
      packet = test::altered(packet, [this](PacketHeaders& h) {
        h.reth.virtual_address = Peer::kIova + kTarget;
        h.reth.r_key = to_.keys.r_key;
      });
    to_.deliver(packet);
    for (const CQE& cqe : to_.receive_cqes()) cqes.push_back(cqe);
  }
  struct Told {
    u32 byte_length;
    bool with_immediate;
    u32 immediate;
    CompletionOp op;
  };
  const std::vector<Told> told = {{64, false, 0, CompletionOp::kReceive},
                                  {2500, false, 0, CompletionOp::kReceive},
                                  {64, true, 0x01020304, CompletionOp::kReceive},
                                  {64, true, 0x05060708, CompletionOp::kReceiveRDMAWithImmediate}};
  EXPECT_EQ(to_.counters().rx_dropped, 0u);
  ASSERT_EQ(cqes.size(), told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(cqes[i].wr_id, 100 + i);
    EXPECT_EQ(cqes[i].byte_length, told[i].byte_length);
    EXPECT_EQ(cqes[i].with_immediate, told[i].with_immediate);
    EXPECT_EQ(cqes[i].immediate, told[i].immediate);
    EXPECT_EQ(cqes[i].op, told[i].op);
  }
}

// --- gaps, IBTA 9.8.2.2.1

TEST_F(UCResponderTest, LostPacketOfAnyPlaceDropsItsMessageAndTheNextArrives) {
  for (std::size_t lost = 0; lost < 4; ++lost) {
    post_receive(lost, 2000);
    std::vector<test::PacketBytes> packets = send(1000);
    ASSERT_EQ(packets.size(), 4u);
    packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(lost));
    to_.deliver(packets);
    EXPECT_TRUE(received().empty()) << lost;
    to_.deliver(send(600));  // takes the receive that the lost message left
    EXPECT_EQ(received(), (test::Outcomes{{lost, WQEStatus::kSuccess}}));
    EXPECT_TRUE(arrived(0, 600));
  }
  EXPECT_TRUE(to_.receives.empty());
}

TEST_F(UCResponderTest, GapBeforeAFirstPacketIsCountedAndTaken) {
  post_receive(1, 256);
  send(256);  // lost whole
  to_.deliver(send(10));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(to_.counters().out_of_sequence, 1u);
  EXPECT_EQ(to_.counters().rx_dropped, 0u);
}

TEST_F(UCResponderTest, GapOfAWholeMessageInsideAMessageDropsIt) {
  post_receive(1, 2000);
  std::vector<test::PacketBytes> first = send(600);
  std::vector<test::PacketBytes> second = send(600);
  // The Last of the second fits the place of the Last of the first, but for its PSN.
  to_.deliver({first[0], first[1], second[2]});
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
}

TEST_F(UCResponderTest, PacketsSwappedOnTheWayDropTheMessage) {
  post_receive(1, 2000);
  std::vector<test::PacketBytes> packets = send(1000);
  std::swap(packets[1], packets[2]);
  to_.deliver(packets);
  EXPECT_TRUE(received().empty());
  to_.deliver(send(10));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderTest, MessageWithoutItsLastEndsWhereTheNextBegins) {
  post_receive(1, 2000);
  const std::vector<test::PacketBytes> cut = send(600);
  const std::vector<test::PacketBytes> whole = write(300);
  to_.deliver(cut[0]);
  // PSNs in order: only the operation tells that the SEND has no end. 9.8.2.2.3
  PSN psn = test::headers_of(cut[0]).bth.psn;
  for (const test::PacketBytes& packet : whole) {
    psn = psn.next();
    to_.deliver(test::altered(packet, [psn](PacketHeaders& h) { h.bth.psn = psn; }));
  }
  EXPECT_TRUE(arrived(kTarget, 300));
  EXPECT_EQ(to_.counters().out_of_sequence, 0u);
  EXPECT_TRUE(received().empty());
}

TEST_F(UCResponderTest, MiddleOrLastOutsideOfItsKindOfMessageIsDropped) {
  post_receive(1, 2000);
  const std::vector<test::PacketBytes> sent = send(600);
  const std::vector<test::PacketBytes> written = write(600);
  const PSN psn = to_.qp.rq_psn;
  const auto at = [](const test::PacketBytes& packet, PSN where) {
    return test::altered(packet, [where](PacketHeaders& h) { h.bth.psn = where; });
  };
  to_.deliver(at(sent[1], psn));  // no message has begun
  to_.deliver(at(sent[0], psn.advanced(1)));
  to_.deliver(at(written[1], psn.advanced(2)));  // a WRITE's Middle inside a SEND
  to_.deliver(at(sent[2], psn.advanced(3)));     // the SEND is gone
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 3u);
}

// --- lengths, IBTA 9.7.4.1.6 and 9.8.2.2.2

class UCResponderLengthTest : public UCResponderTest {
 protected:
  // A packet like `packet`, with `length` bytes of payload.
  static test::PacketBytes resized(const test::PacketBytes& packet, std::size_t length) {
    PacketHeaders headers = test::headers_of(packet);
    headers.bth.pad_count = static_cast<u8>((4 - length % 4) % 4);
    return test::encoded(headers, std::vector<u8>(length, 0xee));
  }
  void expect_dropped(const std::vector<test::PacketBytes>& packets) {
    const u64 before = to_.counters().rx_dropped;
    to_.deliver(packets);
    EXPECT_TRUE(received().empty());
    EXPECT_GT(to_.counters().rx_dropped, before);
  }
};

TEST_F(UCResponderLengthTest, FirstAndMiddleMustBeFull) {
  post_receive(1, 4096);
  for (const std::size_t length : {0u, 255u, 257u}) {
    std::vector<test::PacketBytes> packets = send(600);
    expect_dropped({resized(packets[0], length), packets[1], packets[2]});
    packets = send(600);
    expect_dropped({packets[0], resized(packets[1], length), packets[2]});
    packets = write(600);
    expect_dropped({resized(packets[0], length), packets[1], packets[2]});
  }
}

TEST_F(UCResponderLengthTest, LastMustHoldOneByteToOneMTU) {
  post_receive(1, 4096);
  for (const std::size_t length : {0u, 257u}) {
    const std::vector<test::PacketBytes> packets = send(600);
    expect_dropped({packets[0], packets[1], resized(packets[2], length)});
  }
  const std::vector<test::PacketBytes> packets = send(600);
  to_.deliver({packets[0], packets[1], resized(packets[2], 256)});
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderLengthTest, OnlyMayNotExceedOneMTU) {
  post_receive(1, 4096);
  expect_dropped({resized(send(10)[0], 257)});
}

TEST_F(UCResponderLengthTest, WritePayloadMustSumUpToTheDMALength) {
  for (const u32 claimed : {0u, 255u, 256u, 599u, 601u, 5000u}) {
    std::vector<test::PacketBytes> packets = write(600);
    packets[0] = test::altered(packets[0], [=](PacketHeaders& h) { h.reth.dma_length = claimed; });
    expect_dropped(packets);
    EXPECT_TRUE(only(kTarget, std::min(claimed, 600u))) << claimed;
  }
  expect_dropped({resized(write(10)[0], 11)});
  EXPECT_TRUE(to_.untouched());
}

TEST_F(UCResponderLengthTest, WriteMayNotClaimMoreThan2To31Bytes) {
  const MRKeys all =
      to_.memory.register_whole_process(Peer::kPD, Access::kLocalWrite | Access::kRemoteWrite)
          .value();
  std::vector<test::PacketBytes> packets = write(600);
  packets[0] = test::altered(packets[0], [&](PacketHeaders& h) {
    h.reth = {reinterpret_cast<u64>(to_.buffer.data()), all.r_key, (1u << 31) + 1};
  });
  expect_dropped({packets[0]});
  EXPECT_TRUE(to_.untouched());
}

// Class D of IBTA 9.9.3: no answer, and the receive waits for the next message.
TEST_F(UCResponderLengthTest, SendLongerThanTheReceiveIsDropped) {
  post_receive(1, 500);
  expect_dropped(send(501));
  EXPECT_EQ(to_.counters().resp_local_length_error, 1u);
  EXPECT_TRUE(to_.events().empty());
  to_.deliver(send(500));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

// --- resources and rights

TEST_F(UCResponderTest, SendWithoutAReceiveIsDroppedWholeThoughOneComesLater) {
  const std::vector<test::PacketBytes> packets = send(600);
  to_.deliver(packets[0]);
  post_receive(1, 2000);
  to_.deliver({packets[1], packets[2]});
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 3u);
  to_.deliver(send(600));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderTest, WriteWithImmediateWithoutAReceiveIsDropped) {
  to_.deliver(send(10, SendOp::kRDMAWriteWithImmediate));
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(to_.untouched());
}

TEST_F(UCResponderTest, WriteNeedsTheQPsRight) {
  to_.qp.remote_access = Access::kRemoteRead;
  to_.deliver(write(600));
  EXPECT_TRUE(to_.untouched());
  EXPECT_EQ(to_.counters().rx_dropped, 3u);
  EXPECT_EQ(to_.counters().resp_remote_access_errors, 1u);
}

TEST_F(UCResponderTest, WriteWithABadKeyOrOutOfBoundsTouchesNothing) {
  const auto reth_changed = [&](auto change) {
    std::vector<test::PacketBytes> packets = write(600);
    packets[0] = test::altered(packets[0], [&](PacketHeaders& h) { change(h.reth); });
    to_.deliver(packets);
  };
  const u64 end = Peer::kIova + to_.buffer.size();
  reth_changed([](RETH& reth) { reth.r_key.value ^= 1; });
  reth_changed([&](RETH& reth) { reth.virtual_address = end - 599; });  // by one byte, at the end
  reth_changed([](RETH& reth) { reth.virtual_address = Peer::kIova - 1; });
  reth_changed([](RETH& reth) { reth.virtual_address = ~u64{0} - 100; });
  EXPECT_TRUE(to_.untouched());
  EXPECT_TRUE(to_.events().empty());
  EXPECT_EQ(to_.counters().resp_remote_access_errors, 4u);
  reth_changed([&](RETH& reth) { reth.virtual_address = end - 600; });
  EXPECT_TRUE(arrived(to_.buffer.size() - 600, 600));
}

TEST_F(UCResponderTest, KeyThatDiesHalfwayEndsTheWrite) {
  const std::vector<test::PacketBytes> packets = write(600);
  to_.deliver(packets[0]);
  ASSERT_EQ(to_.memory.deregister_mr(to_.keys.l_key), Status::kOk);
  to_.deliver({packets[1], packets[2]});
  EXPECT_TRUE(arrived(kTarget, 256));
  EXPECT_TRUE(only(kTarget, 256));
  EXPECT_EQ(to_.counters().rx_dropped, 2u);
}

// Class A: the receive itself cannot be written.
TEST_F(UCResponderTest, ReceiveThatCannotBeWrittenIsFatal) {
  to_.post_receive(1, {to_.sge(0, 300), SGE{Peer::kIova, 300, LKey{77}}});
  post_receive(2, 2000);
  to_.deliver(send(600));
  to_.deliver(send(10));  // not taken any more
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kLocalProtection}}));
  EXPECT_EQ(to_.events(), Events{EngineEvent::kFatal});
  EXPECT_TRUE(only(0, 256));  // the packet that was refused left nothing
  to_.to(QPState::kError);
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kFlushed}}));
}

// Copies to far memory end late. Receives are numbered from 1.
TEST_F(UCResponderTest, AFailedCopyFailsTheReceiveThatIsStillFilled) {
  post_receive(1, 64);
  post_receive(2, 1024);
  to_.deliver(send(8));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
  to_.deliver(send(700)[0]);
  to_.engine->on_receive_copy_failed({.psn = 2, .is_receive = true});
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kLocalProtection}}));
  EXPECT_EQ(to_.events(), Events{EngineEvent::kFatal});
}

TEST_F(UCResponderTest, AFailedCopyOfAnEarlierMessageFlushesTheReceiveThatIsStillFilled) {
  post_receive(1, 64);
  post_receive(2, 1024);
  to_.deliver(send(8));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
  to_.deliver(send(700)[0]);
  to_.engine->on_receive_copy_failed({.psn = 1, .is_receive = true});
  EXPECT_EQ(received(), test::Outcomes{});
  to_.to(QPState::kError);
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kFlushed}}));
}

TEST_F(UCResponderTest, PacketsOfOtherServicesAreDropped) {
  post_receive(1, 256);
  const test::PacketBytes packet = send(10)[0];
  for (const Opcode opcode : {Opcode{Service::kRC, Op::kSendOnly}, kCNPOpcode}) {
    PacketView view{.headers = test::headers_of(packet), .payload = {}};
    view.headers.bth.opcode = opcode;
    to_.engine->on_packet(view, {}, Peer::kNow);
  }
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 2u);
}

// --- states

TEST_F(UCResponderTest, TakesPacketsFromRTROnAndTellsTheFirst) {
  to_.to(QPState::kReset);
  to_.to(QPState::kInit);
  post_receive(1, 256);
  post_receive(2, 256);
  to_.deliver(send(10));
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
  to_.to(QPState::kRTR);
  to_.deliver(send(10));
  to_.deliver(send(10));
  EXPECT_EQ(to_.events(), Events{EngineEvent::kCommunicationEstablished});
  EXPECT_EQ(received().size(), 2u);
  to_.to(QPState::kRTS);
  to_.deliver(send(10));
  EXPECT_TRUE(to_.events().empty());
}

TEST_F(UCResponderTest, ReceivesInSQDAndSQE) {
  for (const QPState state : {QPState::kSQD, QPState::kSQE}) {
    to_.to(state);
    post_receive(1, 256);
    to_.deliver(send(10));
    EXPECT_EQ(received().size(), 1u);
  }
}

TEST_F(UCResponderTest, ErrorFlushesTheHeldReceiveThenTheQueueThenLaterOnes) {
  for (u64 id = 1; id <= 3; ++id) post_receive(id, 2000);
  to_.deliver(send(600)[0]);  // takes the first, and does not end
  to_.to(QPState::kError);
  EXPECT_EQ(received(),
            (test::Outcomes{
                {1, WQEStatus::kFlushed}, {2, WQEStatus::kFlushed}, {3, WQEStatus::kFlushed}}));
  post_receive(4, 2000);
  EXPECT_EQ(received(), (test::Outcomes{{4, WQEStatus::kFlushed}}));
  to_.deliver(send(10));
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
}

TEST_F(UCResponderTest, ResetForgetsTheReceivesAndTheMessage) {
  for (u64 id = 1; id <= 3; ++id) post_receive(id, 2000);
  const std::vector<test::PacketBytes> packets = send(600);
  to_.deliver(packets[0]);
  to_.to(QPState::kReset);
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(to_.receives.empty());
  to_.qp.rq_psn = test::headers_of(packets[1]).bth.psn;
  to_.to_rts();
  to_.deliver({packets[1], packets[2]});
  EXPECT_EQ(to_.counters().out_of_sequence, 0u);
  EXPECT_EQ(to_.counters().rx_dropped, 2u);
}

// --- on a shared receive queue, IBTA 10.2.9

class UCResponderSRQTest : public UCResponderTest {
 protected:
  UCResponderSRQTest() : UCResponderTest(test::PeerOptions{.shared_receive_queue = true}) {}
};

// Class E: a WQE that was taken cannot go back; it completes in error and the QP lives on.
TEST_F(UCResponderSRQTest, DroppedMessageCompletesItsReceiveInError) {
  post_receive(1, 2000);
  post_receive(2, 2000);
  std::vector<test::PacketBytes> packets = send(600);
  to_.deliver({packets[0], packets[2]});
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kRemoteInvalidRequest}}));
  EXPECT_TRUE(to_.events().empty());
  to_.deliver(send(600));
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderSRQTest, TooSmallReceiveCompletesWithLocalLength) {
  post_receive(1, 500);
  to_.deliver(send(501));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kLocalLength}}));
}

TEST_F(UCResponderSRQTest, OnePacketMayDropOneMessageAndCompleteTheNext) {
  post_receive(1, 2000);
  post_receive(2, 2000);
  to_.deliver(send(600)[0]);
  to_.deliver(send(10));
  EXPECT_EQ(received(),
            (test::Outcomes{{1, WQEStatus::kRemoteInvalidRequest}, {2, WQEStatus::kSuccess}}));
}

TEST_F(UCResponderSRQTest, ErrorFlushesOnlyTheHeldReceive) {
  post_receive(1, 2000);
  post_receive(2, 2000);
  to_.deliver(send(600)[0]);
  to_.to(QPState::kError);
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kFlushed}}));
  to_.to(QPState::kReset);
  EXPECT_EQ(to_.receives.size(), 1u);  // stays for the SRQ's other QPs
}

}  // namespace
}  // namespace verbena
