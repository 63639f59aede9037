#include "transport/ud/requester.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/pcap.h"
#include "transport/ud/engine.h"
#include "transport/unreliable_test_peer.h"

namespace verbena {
namespace {

constexpr QKey kQKey{0x11111111};

class UDRequesterTest : public testing::Test {
 protected:
  using Peer = test::TestPeer<UDEngine>;

  UDRequesterTest() {
    std::iota(peer_.buffer.begin(), peer_.buffer.end(), u8{0});
    peer_.qp.q_key = QKey{0x22222222};
    peer_.qp.path_mtu = MTU::k1024;
    peer_.qp.sq_psn = PSN{0x0a0000};
    peer_.to_rts();
  }
  static SendWR datagram(SendOp op = SendOp::kSend) {
    SendWR wr;
    wr.op = op;
    wr.signaled = true;
    wr.immediate = 0xcafe1234;
    wr.destination.destination = GID::from_ipv4(0x0a4d0002);
    wr.dest_qp = QPN{0x16};
    wr.q_key = kQKey;
    return wr;
  }
  std::vector<test::PacketBytes> packets_of(const SendWR& wr, u64 length) {
    EXPECT_EQ(peer_.post(wr, {peer_.sge(0, length)}), PostError::kOk);
    return peer_.sent();
  }

  Peer peer_{QPType::kUD, QPN{0x16}, QPN{}};
};

// tests/captures/rxe-ud.pcap: SEND of 64 and 1024 and SEND with immediate of 33 by Linux's
// soft-RoCE. We send the same packets, byte for byte, but for MigReq, which rxe leaves 0 and cards
// set.
TEST_F(UDRequesterTest, SendsWhatLinuxSends) {
  const std::vector<std::pair<SendOp, u64>> sends = {
      {SendOp::kSend, 64}, {SendOp::kSend, 1024}, {SendOp::kSendWithImmediate, 33}};
  constexpr std::size_t kTransportAt = 42;
  const std::vector<test::CapturedFrame> frames = test::read_capture("rxe-ud.pcap");
  ASSERT_EQ(frames.size(), sends.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::vector<u8>& frame = frames[i].bytes;
    const test::PacketBytes linux_packet(frame.begin() + kTransportAt, frame.end() - kICRCSize);
    const std::vector<test::PacketBytes> packets =
        packets_of(datagram(sends[i].first), sends[i].second);
    ASSERT_EQ(packets.size(), 1u);
    const test::PacketBytes ours =
        test::altered(packets[0], [](PacketHeaders& h) { h.bth.mig_req = false; });
    EXPECT_EQ(ours, linux_packet) << "frame " << i + 1;
  }
}

TEST_F(UDRequesterTest, DestinationIsTheRequestsAddressVector) {
  SendWR wr = datagram();
  wr.destination.traffic_class = 0x68;
  ASSERT_EQ(peer_.post(wr, {peer_.sge(0, 8)}), PostError::kOk);
  TxPacket packet;
  ASSERT_TRUE(peer_.engine->poll_packet(Peer::kNow, MaySend::kAnything, packet));
  ASSERT_NE(packet.destination, nullptr);
  EXPECT_EQ(*packet.destination, wr.destination);
}

TEST_F(UDRequesterTest, CompletesWhenThePacketIsPolled) {
  ASSERT_EQ(peer_.post(datagram(), {peer_.sge(0, 8)}), PostError::kOk);
  EXPECT_TRUE(peer_.send_cqes().empty());
  EXPECT_EQ(peer_.sent().size(), 1u);
  EXPECT_EQ(peer_.send_cqes().size(), 1u);
}

// IBTA 10.2.5: the high bit asks for the QP's own Q_Key, which a privileged consumer has set.
TEST_F(UDRequesterTest, QKeyWithTheHighBitMeansTheQPsOwn) {
  SendWR wr = datagram();
  EXPECT_EQ(test::headers_of(packets_of(wr, 8)[0]).deth.q_key, kQKey);
  wr.q_key = QKey{0x80000000};
  EXPECT_EQ(test::headers_of(packets_of(wr, 8)[0]).deth.q_key, QKey{0x22222222});
  EXPECT_EQ(test::headers_of(packets_of(wr, 8)[0]).deth.source_qp, peer_.qp.qpn);
}

TEST_F(UDRequesterTest, MessageMayFillTheMTUAndNotOneByteMore) {
  EXPECT_EQ(packets_of(datagram(), 1024).size(), 1u);
  EXPECT_EQ(peer_.post(datagram(), {peer_.sge(0, 1000), peer_.sge(0, 25)}),
            PostError::kMessageTooLong);
  EXPECT_TRUE(peer_.sent().empty());
}

TEST_F(UDRequesterTest, EmptyMessageIsAPacket) {
  EXPECT_EQ(packets_of(datagram(), 0)[0].size(), BTH::kSize + DETH::kSize);
}

TEST_F(UDRequesterTest, RefusesWhatUDHasNot) {
  for (const SendOp op :
       {SendOp::kSendWithInvalidate, SendOp::kRDMAWrite, SendOp::kRDMAWriteWithImmediate,
        SendOp::kRDMARead, SendOp::kCompareSwap, SendOp::kFetchAdd, SendOp::kFlush,
        SendOp::kAtomicWrite, SendOp::kBindMW, SendOp::kLocalInvalidate})
    EXPECT_EQ(peer_.post(datagram(op), {peer_.sge(0, 8)}), PostError::kBadOpcode);
  SendWR nowhere = datagram();
  nowhere.destination = {};
  EXPECT_EQ(peer_.post(nowhere, {peer_.sge(0, 8)}), PostError::kBadDestination);
  peer_.qp.state = QPState::kRTR;
  EXPECT_EQ(peer_.post(datagram(), {peer_.sge(0, 8)}), PostError::kBadState);
}

TEST_F(UDRequesterTest, LocalProtectionErrorStopsTheQueueUntilItRecovers) {
  ASSERT_EQ(peer_.post(datagram(), {SGE{0, 8, LKey{77}}}), PostError::kOk);
  ASSERT_EQ(peer_.post(datagram(), {peer_.sge(0, 8)}), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(peer_.events(), std::vector<EngineEvent>{EngineEvent::kSQError});
  peer_.to(QPState::kSQE);
  const std::vector<CQE> cqes = peer_.send_cqes();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, WQEStatus::kLocalProtection);
  EXPECT_EQ(cqes[1].status, WQEStatus::kFlushed);
  peer_.to(QPState::kRTS);
  EXPECT_EQ(packets_of(datagram(), 8).size(), 1u);
}

TEST_F(UDRequesterTest, InlineDataIsCopiedAtThePost) {
  std::vector<u8> data = {1, 2, 3, 4};
  SendWR wr = datagram();
  wr.inline_data = true;
  ASSERT_EQ(peer_.post(wr, {{reinterpret_cast<u64>(data.data()), 4, LKey{}}}), PostError::kOk);
  data.assign(4, 0);
  const test::PacketBytes packet = peer_.sent()[0];
  EXPECT_EQ(test::PacketBytes(packet.end() - 4, packet.end()), (std::vector<u8>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace verbena
