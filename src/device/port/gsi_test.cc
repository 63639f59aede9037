#include "device/port/gsi.h"

#include <gtest/gtest.h>

#include "device/port/frame_check.h"
#include "device/testing.h"
#include "wire/ib/lid_address.h"

namespace verbena {
namespace {

using namespace verbena::test;

MADBytes mad_of(u8 first) {
  MADBytes mad{};
  for (std::size_t i = 0; i < mad.size(); ++i) mad[i] = static_cast<u8>(first + i);
  return mad;
}

PacketHeaders management_headers() {
  return {.bth = {.opcode = {Service::kUD, Op::kSendOnly}, .dest_qp = kGSIQPN},
          .deth = {.q_key = kGSIQKey, .source_qp = kGSIQPN}};
}

class GSITest : public ::testing::Test {
 protected:
  void receive(const PacketHeaders& headers, std::span<const u8> payload) {
    gsi_.on_packet({.headers = headers, .payload = payload},
                   {.source = kGIDB, .destination = kGIDA, .transport = {}});
  }
  Counters counters_;
  GSI gsi_{counters_};
  GSIMessage message_;
};

TEST_F(GSITest, TakesAManagementDatagram) {
  receive(management_headers(), mad_of(3));
  ASSERT_TRUE(gsi_.poll(message_));
  EXPECT_EQ(message_.source, kGIDB);
  EXPECT_EQ(message_.destination, kGIDA);
  EXPECT_EQ(message_.source_qp, kGSIQPN);
  EXPECT_EQ(message_.mad, mad_of(3));
  EXPECT_FALSE(gsi_.poll(message_));
}

TEST_F(GSITest, DropsWhatIsNoManagementDatagram) {
  PacketHeaders headers = management_headers();
  headers.bth.opcode = {Service::kRC, Op::kSendOnly};
  receive(headers, mad_of(0));
  EXPECT_EQ(counters_.dropped_service, 1u);
  headers = management_headers();
  headers.deth.q_key = QKey{1};
  receive(headers, mad_of(0));
  EXPECT_EQ(counters_.dropped_source, 1u);
  headers = management_headers();
  headers.bth.p_key = PKey{0x1234};
  receive(headers, mad_of(0));
  EXPECT_EQ(counters_.dropped_p_key, 1u);
  const MADBytes mad = mad_of(0);
  for (const std::size_t size : {std::size_t{0}, kMADSize - 1})
    receive(management_headers(), std::span(mad).first(size));
  EXPECT_EQ(counters_.port_rcv_errors, 2u);
  EXPECT_FALSE(gsi_.poll(message_));
}

// Within an InfiniBand subnet a peer is known by its LID.
TEST_F(GSITest, ADatagramToALIDIsAnInfiniBandFrame) {
  EgressFrame frame;
  ASSERT_EQ(gsi_.post({.source = kGIDA, .destination = address_of_lid(7)}, mad_of(3)), Status::kOk);
  ASSERT_TRUE(gsi_.poll_frame(frame));
  EXPECT_EQ(frame.type, GIDType::kInfiniBand);
  EXPECT_EQ(frame.destination, address_of_lid(7));
  ASSERT_EQ(gsi_.post({.source = kGIDA, .destination = kGIDB}, mad_of(3)), Status::kOk);
  ASSERT_TRUE(gsi_.poll_frame(frame));
  EXPECT_EQ(frame.type, GIDType::kRoCEv2);
}

TEST_F(GSITest, QueuesAreBounded) {
  for (std::size_t i = 0; i <= GSI::kQueueSize; ++i) {
    receive(management_headers(), mad_of(static_cast<u8>(i)));
    EXPECT_EQ(gsi_.post({}, mad_of(0)), i < GSI::kQueueSize ? Status::kOk : Status::kAgain);
  }
  EXPECT_EQ(counters_.out_of_buffer, 1u);
  for (std::size_t i = 0; i < GSI::kQueueSize; ++i) {
    ASSERT_TRUE(gsi_.poll(message_));
    EXPECT_EQ(message_.mad, mad_of(static_cast<u8>(i)));
  }
  EXPECT_FALSE(gsi_.poll(message_));
}

// Through whole devices, as links see it.
TEST(DeviceGSITest, MADsGoFromQP1ToQP1) {
  Wire wire;
  const AddressVector path{.source = kGIDA, .destination = kGIDB, .traffic_class = 0x20};
  for (const u8 first : {u8{1}, u8{2}})
    ASSERT_EQ(wire.a.device.post_gsi(path, mad_of(first)), Status::kOk);
  EXPECT_EQ(wire.run(), 2u);
  GSIMessage message;
  for (const u8 first : {u8{1}, u8{2}}) {
    ASSERT_TRUE(wire.b.device.poll_gsi(message));
    EXPECT_EQ(message.mad, mad_of(first));
    EXPECT_EQ(message.source, kGIDA);
  }
  EXPECT_EQ(wire.b.device.counters().port_rcv_errors, 0u);
  EXPECT_EQ(wire.b.device.counters().dropped_unknown_qp, 0u);
}

TEST(DeviceGSITest, FramesSayWhoSentThem) {
  Node node(config_at(kGIDA, QPN{0x100}));
  const AddressVector path{.source = kGIDA, .destination = kGIDB, .traffic_class = 0x20};
  EgressFrame frame;
  EXPECT_FALSE(node.device.poll_frame(kStart, frame));
  for (const u32 psn : {0u, 1u}) {
    ASSERT_EQ(node.device.post_gsi(path, mad_of(0)), Status::kOk);
    ASSERT_TRUE(node.device.poll_frame(kStart, frame));
    EXPECT_EQ(frame.source, kGIDA);
    EXPECT_EQ(frame.destination, kGIDB);
    EXPECT_EQ(frame.traffic_class, 0x20);
    const std::vector<u8> bytes = on_the_wire(frame);
    const auto packet = PacketView::decode(without_icrc(received(frame, bytes)));
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->headers.bth.psn, PSN{psn});
    EXPECT_EQ(packet->headers.bth.dest_qp, kGSIQPN);
    EXPECT_TRUE(packet->headers.bth.mig_req);
    EXPECT_EQ(packet->headers.deth, (DETH{.q_key = kGSIQKey, .source_qp = kGSIQPN}));
    EXPECT_EQ(packet->payload.size(), kMADSize);
  }
}

}  // namespace
}  // namespace verbena
