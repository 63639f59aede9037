#include "transport/uc/requester.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/pcap.h"
#include "transport/uc/engine.h"
#include "transport/unreliable_test_peer.h"

namespace verbena {
namespace {

class UCRequesterTest : public testing::Test {
 protected:
  using Peer = test::TestPeer<UCEngine>;

  UCRequesterTest() {
    std::iota(peer_.buffer.begin(), peer_.buffer.end(), u8{0});
    peer_.to_rts();
  }
  static SendWR request(SendOp op) {
    SendWR wr;
    wr.op = op;
    wr.immediate = 0x01020304;
    wr.remote_address = 0x2bb0b000;
    wr.r_key = RKey{0x67f};
    return wr;
  }
  std::vector<test::PacketBytes> packets_of(const SendWR& wr, u64 length) {
    EXPECT_EQ(peer_.post(wr, {peer_.sge(0, length)}), PostError::kOk);
    return peer_.sent();
  }
  static std::vector<Op> ops_of(const std::vector<test::PacketBytes>& packets) {
    std::vector<Op> ops;
    for (const test::PacketBytes& packet : packets)
      ops.push_back(test::headers_of(packet).bth.opcode.op);
    return ops;
  }

  Peer peer_{QPType::kUC, QPN{0x12}, QPN{0x15}};  // MTU 256
};

using Ops = std::vector<Op>;

TEST_F(UCRequesterTest, SegmentsAtThePathMTU) {
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kSend), 0)), Ops{Op::kSendOnly});
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kSend), 256)), Ops{Op::kSendOnly});
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kSend), 257)), (Ops{Op::kSendFirst, Op::kSendLast}));
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kSendWithImmediate), 513)),
            (Ops{Op::kSendFirst, Op::kSendMiddle, Op::kSendLastWithImmediate}));
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kSendWithImmediate), 1)),
            Ops{Op::kSendOnlyWithImmediate});
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kRDMAWrite), 768)),
            (Ops{Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle, Op::kRDMAWriteLast}));
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kRDMAWrite), 0)), Ops{Op::kRDMAWriteOnly});
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kRDMAWriteWithImmediate), 512)),
            (Ops{Op::kRDMAWriteFirst, Op::kRDMAWriteLastWithImmediate}));
  EXPECT_EQ(ops_of(packets_of(request(SendOp::kRDMAWriteWithImmediate), 0)),
            Ops{Op::kRDMAWriteOnlyWithImmediate});
}

TEST_F(UCRequesterTest, EveryMTUFillsEveryPacketButTheLast) {
  for (const MTU mtu : {MTU::k256, MTU::k512, MTU::k1024, MTU::k2048, MTU::k4096}) {
    peer_.qp.path_mtu = mtu;
    const std::vector<test::PacketBytes> packets =
        packets_of(request(SendOp::kSend), 2 * u64{bytes(mtu)} + 1);
    ASSERT_EQ(packets.size(), 3u);
    EXPECT_EQ(packets[0].size(), BTH::kSize + bytes(mtu));
    EXPECT_EQ(packets[1].size(), BTH::kSize + bytes(mtu));
    EXPECT_EQ(packets[2].size(), BTH::kSize + 1 + 3);  // and three pad bytes
  }
}

TEST_F(UCRequesterTest, PSNCountsPacketsAndWrapsAt24Bits) {
  ASSERT_EQ(peer_.qp.sq_psn, PSN{0xfffffe});
  const std::vector<test::PacketBytes> packets = packets_of(request(SendOp::kSend), 1000);
  ASSERT_EQ(packets.size(), 4u);
  for (u32 i = 0; i < 4; ++i)
    EXPECT_EQ(test::headers_of(packets[i]).bth.psn, peer_.qp.sq_psn.advanced(i));
  EXPECT_EQ(test::headers_of(packets[2]).bth.psn.value(), 0u);
}

TEST_F(UCRequesterTest, SolicitedEventIsOnlyOnThePacketThatCompletesAReceive) {
  for (const SendOp op : {SendOp::kSend, SendOp::kSendWithImmediate, SendOp::kRDMAWrite,
                          SendOp::kRDMAWriteWithImmediate}) {
    SendWR wr = request(op);
    wr.solicited = true;
    const std::vector<test::PacketBytes> packets = packets_of(wr, 600);
    ASSERT_EQ(packets.size(), 3u);
    EXPECT_FALSE(test::headers_of(packets[0]).bth.solicited_event);
    EXPECT_FALSE(test::headers_of(packets[1]).bth.solicited_event);
    EXPECT_EQ(test::headers_of(packets[2]).bth.solicited_event, op != SendOp::kRDMAWrite);
  }
}

TEST_F(UCRequesterTest, NoPacketAsksForAnAcknowledge) {
  for (const test::PacketBytes& packet : packets_of(request(SendOp::kRDMAWrite), 1000))
    EXPECT_FALSE(test::headers_of(packet).bth.ack_req);
}

TEST_F(UCRequesterTest, InlineDataIsSegmentedLikeAnyOther) {
  peer_.qp.path_mtu = MTU::k256;
  std::vector<u8> data(100, 0x5a);
  SendWR wr = request(SendOp::kSend);
  wr.inline_data = true;
  ASSERT_EQ(peer_.post(wr, {{reinterpret_cast<u64>(data.data()), 100, LKey{}}}), PostError::kOk);
  data.assign(100, 0);
  const std::vector<test::PacketBytes> packets = peer_.sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(test::PacketBytes(packets[0].begin() + BTH::kSize, packets[0].end()),
            std::vector<u8>(100, 0x5a));
}

TEST_F(UCRequesterTest, OperationsOfOtherServicesAreRefused) {
  for (const SendOp op : {SendOp::kSendWithInvalidate, SendOp::kRDMARead, SendOp::kCompareSwap,
                          SendOp::kFetchAdd, SendOp::kFlush, SendOp::kAtomicWrite})
    EXPECT_EQ(peer_.post(request(op), {peer_.sge(0, 8)}), PostError::kBadOpcode);
}

TEST_F(UCRequesterTest, KeyThatDiesHalfwayStopsTheMessage) {
  ASSERT_EQ(peer_.post(request(SendOp::kSend), {peer_.sge(0, 1000)}), PostError::kOk);
  TxPacket packet;
  ASSERT_TRUE(peer_.engine->poll_packet(Peer::kNow, MaySend::kAnything, packet));
  ASSERT_EQ(peer_.memory.deregister_mr(peer_.keys.l_key), Status::kOk);
  EXPECT_FALSE(peer_.engine->poll_packet(Peer::kNow, MaySend::kAnything, packet));
  const std::vector<CQE> cqes = peer_.send_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0].status, WQEStatus::kLocalProtection);
}

// tests/captures/rxe-uc.pcap: the UC conversation of Linux's soft-RoCE, in full. SEND 64 and 2500,
// SEND with immediate 64, WRITE 64 and 2500, WRITE with immediate 64 at MTU 1024, PSNs from 655360.
// We send the same packets, byte for byte, but for MigReq, which rxe leaves 0 and cards set.
TEST_F(UCRequesterTest, SendsWhatLinuxSends) {
  peer_.to(QPState::kReset);
  peer_.qp.path_mtu = MTU::k1024;
  peer_.qp.sq_psn = PSN{0x0a0000};
  peer_.to_rts();
  SendWR write_with_immediate = request(SendOp::kRDMAWriteWithImmediate);
  write_with_immediate.immediate = 0x05060708;
  std::vector<test::PacketBytes> packets;
  const auto send = [&](const SendWR& wr, u64 length) {
    for (test::PacketBytes& packet : packets_of(wr, length)) packets.push_back(std::move(packet));
  };
  send(request(SendOp::kSend), 64);
  send(request(SendOp::kSend), 2500);
  send(request(SendOp::kSendWithImmediate), 64);
  send(request(SendOp::kRDMAWrite), 64);
  send(request(SendOp::kRDMAWrite), 2500);
  send(write_with_immediate, 64);

  constexpr std::size_t kTransportAt = 42;
  const std::vector<test::CapturedFrame> frames = test::read_capture("rxe-uc.pcap");
  ASSERT_EQ(frames.size(), packets.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::vector<u8>& frame = frames[i].bytes;
    const test::PacketBytes linux_packet(frame.begin() + kTransportAt, frame.end() - kICRCSize);
    const test::PacketBytes ours =
        test::altered(packets[i], [](PacketHeaders& h) { h.bth.mig_req = false; });
    EXPECT_EQ(ours, linux_packet) << "frame " << i + 1;
    EXPECT_TRUE(test::headers_of(packets[i]).bth.mig_req);
  }
}

}  // namespace
}  // namespace verbena
