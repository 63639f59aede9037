#include "transport/ud/responder.h"

#include <gtest/gtest.h>

#include <numeric>

#include "transport/ud/engine.h"
#include "transport/ud/grh_bytes.h"
#include "transport/unreliable_test_peer.h"
#include "wire/ib/lid_address.h"

namespace verbena {
namespace {

constexpr u64 kGRH = GRH::kSize;

class UDResponderTest : public testing::Test {
 protected:
  using Peer = test::TestPeer<UDEngine>;

  explicit UDResponderTest(const test::PeerOptions& options = {})
      : to_(QPType::kUD, QPN{2}, QPN{}, options) {
    std::iota(from_.buffer.begin(), from_.buffer.end(), u8{1});
    to_.qp.q_key = QKey{0x1234};
    from_.to_rts();
    to_.to_rts();
  }
  test::PacketBytes datagram(u64 length, SendOp op = SendOp::kSend) {
    SendWR wr;
    wr.op = op;
    wr.immediate = 0xcafe;
    wr.destination.destination = GID::from_ipv4(0x0a000002);
    wr.dest_qp = QPN{2};
    wr.q_key = QKey{0x1234};
    EXPECT_EQ(from_.post(wr, {from_.sge(0, length)}), PostError::kOk);
    const std::vector<test::PacketBytes> packets = from_.sent();
    EXPECT_TRUE(from_.send_cqes().empty());
    return packets.at(0);
  }
  static RxContext ipv4_context() {
    return {.source = GID::from_ipv4(0x0a000001),
            .destination = GID::from_ipv4(0x0a000002),
            .traffic_class = 0x68,
            .hop_limit = 63,
            .transport_bytes = 124};
  }
  void post_receive(u64 wr_id, u64 length) { to_.post_receive(wr_id, {to_.sge(0, length)}); }
  test::Outcomes received() { return test::outcomes(to_.receive_cqes()); }

  Peer from_{QPType::kUD, QPN{1}, QPN{}};
  Peer to_;
};

TEST_F(UDResponderTest, DatagramLiesBehindFortyBytesOfGRH) {
  to_.post_receive(7, {to_.sge(0, 30), to_.sge(100, 200)});  // the GRH may be split too
  to_.deliver(datagram(100), ipv4_context());
  EXPECT_EQ(to_.receive_cqes(), (std::vector<CQE>{{.wr_id = 7,
                                                   .op = CompletionOp::kReceive,
                                                   .with_grh = true,
                                                   .service_level = 0xa,
                                                   .byte_length = 140,
                                                   .qp = QPN{2},
                                                   .source_qp = QPN{1}}}));
  const std::array<u8, kGRH> grh = grh_bytes(ipv4_context());
  EXPECT_TRUE(std::ranges::equal(to_.bytes_at(0, 30), std::span(grh).first(30)));
  EXPECT_TRUE(std::ranges::equal(to_.bytes_at(100, 10), std::span(grh).last(10)));
  EXPECT_EQ(to_.bytes_at(110, 100), from_.bytes_at(0, 100));
}

// IBTA Vol 1, 11.4.1.2: without a GRH its 40 bytes are undefined; here they stay as they were.
TEST_F(UDResponderTest, WithinASubnetThereIsNoGRHButALID) {
  post_receive(7, 200);
  const auto before = to_.bytes_at(0, kGRH);
  to_.deliver(datagram(100), {.source = address_of_lid(9),
                              .destination = *GID::parse("fe80::1"),
                              .type = GIDType::kInfiniBand,
                              .traffic_class = traffic_class_of_sl(3),
                              .transport_bytes = 124});
  EXPECT_EQ(to_.receive_cqes(), (std::vector<CQE>{{.wr_id = 7,
                                                   .op = CompletionOp::kReceive,
                                                   .service_level = 3,
                                                   .source_lid = 9,
                                                   .byte_length = 140,
                                                   .qp = QPN{2},
                                                   .source_qp = QPN{1}}}));
  EXPECT_EQ(to_.bytes_at(0, kGRH), before);
  EXPECT_EQ(to_.bytes_at(kGRH, 100), from_.bytes_at(0, 100));
}

TEST_F(UDResponderTest, RoCEv1LeavesItsGRH) {
  RxContext context = ipv4_context();
  context.type = GIDType::kRoCEv1;
  EXPECT_EQ(GRH::decode(grh_bytes(context)), (GRH{.traffic_class = 0x68,
                                                  .payload_length = 124,
                                                  .next_header = kNextHeaderIBA,
                                                  .hop_limit = 63,
                                                  .sgid = context.source,
                                                  .dgid = context.destination}));
}

TEST_F(UDResponderTest, TheCompletionTellsTheVersionOfIP) {
  RxContext ipv6 = ipv4_context();
  ipv6.source.bytes[0] = ipv6.destination.bytes[0] = 0xfe;
  post_receive(1, 256);
  post_receive(2, 256);
  to_.deliver(datagram(8), ipv4_context());
  to_.deliver(datagram(8), ipv6);
  const std::vector<CQE> cqes = to_.receive_cqes();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].service_level, 0xa);
  EXPECT_EQ(cqes[1].service_level, 0x9);
}

TEST_F(UDResponderTest, ImmediateAndSolicitedReachTheCompletion) {
  post_receive(1, 256);
  to_.deliver(test::altered(datagram(0, SendOp::kSendWithImmediate),
                            [](PacketHeaders& h) { h.bth.solicited_event = true; }));
  const std::vector<CQE> cqes = to_.receive_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_TRUE(cqes[0].with_immediate);
  EXPECT_TRUE(cqes[0].solicited);
  EXPECT_EQ(cqes[0].immediate, 0xcafeu);
  EXPECT_EQ(cqes[0].byte_length, kGRH);
}

TEST_F(UDResponderTest, AnyPSNIsTaken) {
  for (const u32 psn : {0u, 0x800000u, 5u, 5u}) {
    post_receive(psn, 256);
    to_.deliver(test::altered(datagram(8), [psn](PacketHeaders& h) { h.bth.psn = PSN{psn}; }));
    EXPECT_EQ(received(), (test::Outcomes{{psn, WQEStatus::kSuccess}}));
  }
}

// IBTA 9.6.1.4.1
TEST_F(UDResponderTest, WrongQKeyIsDroppedInSilence) {
  post_receive(1, 256);
  to_.deliver(test::altered(datagram(8), [](PacketHeaders& h) { h.deth.q_key.value ^= 1; }));
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(to_.events().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
  EXPECT_EQ(to_.receives.size(), 1u);
  EXPECT_TRUE(to_.untouched());
}

TEST_F(UDResponderTest, DatagramWithoutAReceiveIsDroppedInSilence) {
  to_.deliver(datagram(8));
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(to_.events().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
}

TEST_F(UDResponderTest, MoreThanTheMTUIsDropped) {
  post_receive(1, 1024);
  const test::PacketBytes packet =
      test::encoded(test::headers_of(datagram(8)), std::vector<u8>(260));
  to_.deliver(packet);
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
}

// Class D of IBTA 9.9.3: the receive stays for the next datagram.
TEST_F(UDResponderTest, DatagramThatDoesNotFitWithItsGRHIsDropped) {
  post_receive(1, kGRH + 99);
  to_.deliver(datagram(100));
  EXPECT_TRUE(received().empty());
  EXPECT_TRUE(to_.untouched());
  EXPECT_EQ(to_.counters().resp_local_length_error, 1u);
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
  to_.deliver(datagram(99));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kSuccess}}));
}

// Class A.
TEST_F(UDResponderTest, ReceiveThatCannotBeWrittenIsFatal) {
  to_.post_receive(1, {to_.sge(0, 50), SGE{Peer::kIova, 300, LKey{77}}});
  to_.deliver(datagram(100));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kLocalProtection}}));
  EXPECT_EQ(to_.events(), std::vector<EngineEvent>{EngineEvent::kFatal});
}

TEST_F(UDResponderTest, OtherServicesAndOperationsAreDropped) {
  post_receive(1, 256);
  for (const Opcode opcode :
       {Opcode{Service::kRC, Op::kSendOnly}, Opcode{Service::kUD, Op::kSendFirst},
        Opcode{Service::kUD, Op::kRDMAWriteOnly}}) {
    PacketView view{.headers = test::headers_of(datagram(0)), .payload = {}};
    view.headers.bth.opcode = opcode;
    to_.engine->on_packet(view, {}, Peer::kNow);
  }
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(to_.counters().rx_dropped, 3u);
}

TEST_F(UDResponderTest, ReceivesFromRTROnButNotInError) {
  for (const QPState state : {QPState::kRTR, QPState::kSQD, QPState::kSQE}) {
    to_.to(state);
    post_receive(1, 256);
    to_.deliver(datagram(8));
    EXPECT_EQ(received().size(), 1u);
  }
  post_receive(2, 256);
  to_.to(QPState::kError);
  to_.deliver(datagram(8));
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kFlushed}}));
  EXPECT_EQ(to_.counters().rx_dropped, 1u);
}

class UDResponderSRQTest : public UDResponderTest {
 protected:
  UDResponderSRQTest() : UDResponderTest(test::PeerOptions{.shared_receive_queue = true}) {}
};

// Class E: a receive that was taken from an SRQ completes, and the QP continues.
TEST_F(UDResponderSRQTest, DatagramThatDoesNotFitCompletesItsReceiveWithLocalLength) {
  post_receive(1, kGRH + 99);
  post_receive(2, kGRH + 100);
  to_.deliver(datagram(100));
  EXPECT_EQ(received(), (test::Outcomes{{1, WQEStatus::kLocalLength}}));
  EXPECT_TRUE(to_.events().empty());
  to_.deliver(datagram(100));
  EXPECT_EQ(received(), (test::Outcomes{{2, WQEStatus::kSuccess}}));
}

TEST_F(UDResponderSRQTest, ErrorAndResetLeaveTheSRQAlone) {
  post_receive(1, 256);
  to_.to(QPState::kError);
  EXPECT_TRUE(received().empty());
  to_.to(QPState::kReset);
  EXPECT_EQ(to_.receives.size(), 1u);
}

}  // namespace
}  // namespace verbena
