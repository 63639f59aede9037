// Frames through VXLAN and back, by the codec that links use.
#include "host/links/vxlan_stage.h"

#include <gtest/gtest.h>

#include <numeric>

#include "device/port/frame_check.h"
#include "host/links/frame_codec.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {
namespace {

struct VXLANEnds {
  GID from, to;
  std::size_t head_bytes;
};
const std::array<VXLANEnds, 2> kVXLANEnds = {
    {{GID::from_ipv4(0x0a4d0001), GID::from_ipv4(0x0a4d0002), 50},
     {*GID::parse("fd00::1"), *GID::parse("fd00::2"), 70}}};

EgressFrame vxlan_frame(const VXLANEnds& ends, std::span<const u8> payload) {
  EgressFrame frame;
  frame.source = ends.from;
  frame.destination = ends.to;
  frame.udp_source_port = 0xc123;
  frame.traffic_class = 0x6a;
  frame.hop_limit = 63;
  BTH bth{.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = QPN{0x4001}, .psn = PSN{7}};
  bth.encode(std::span(frame.headers).first<BTH::kSize>());
  frame.headers_size = BTH::kSize;
  frame.payload.add(payload);
  return frame;
}

std::vector<u8> encapsulated(VXLANStage& stage, const EgressFrame& frame) {
  Encapsulation* const around = stage.sender_for(frame);
  std::vector<u8> out(encoded_room(frame.transport_size(), around));
  EnvelopeCRC flow;
  const ICRC icrc(flow.of({.source = frame.source,
                           .destination = frame.destination,
                           .udp_source_port = frame.udp_source_port},
                          frame.transport_size()));
  out.resize(
      encode_encapsulated(frame, 0, icrc, *around, frame.udp_source_port, out.data()).size());
  return out;
}

IngressFrame received(const VXLANEnds& ends, std::span<const u8> bytes) {
  IngressFrame frame;
  frame.source = ends.from;
  frame.destination = ends.to;
  frame.transport = bytes;
  return frame;
}

TEST(VXLANStageTest, GivesBackWhatWasSent) {
  std::vector<u8> payload(1024);
  std::iota(payload.begin(), payload.end(), u8{1});
  for (const VXLANEnds& ends : kVXLANEnds) {
    VXLANStage stage(5001);
    const EgressFrame sent = vxlan_frame(ends, payload);
    const std::vector<u8> bytes = encapsulated(stage, sent);
    ASSERT_EQ(bytes.size(), ends.head_bytes + sent.transport_size() + kICRCSize);
    // As any other implementation sees it: VXLAN, Ethernet, IP, UDP 4791, a right ICRC.
    EXPECT_EQ(VXLANHeader::decode(bytes)->vni, 5001u);
    const auto inner =
        RoCEv2View::decode(std::span(bytes).subspan(VXLANHeader::kSize + EthernetHeader::kSize));
    ASSERT_TRUE(inner.has_value());
    EXPECT_EQ(icrc_of(inner->envelope, inner->transport), inner->icrc);
    IngressFrame got = received(ends, bytes);
    LinkCounters counters;
    ASSERT_TRUE(stage.open_frame(got, counters));
    EXPECT_EQ(got.source, ends.from);
    EXPECT_EQ(got.udp_source_port, 0xc123);
    EXPECT_EQ(got.traffic_class, 0x6a);
    EXPECT_EQ(check_frame(got), FrameFault::kNone);
    EXPECT_TRUE(std::ranges::equal(got.transport.subspan(BTH::kSize, payload.size()), payload));
    EXPECT_EQ(counters.refused_vni, 0u);
  }
}

TEST(VXLANStageTest, OtherNetworksAndRubbishAreRefused) {
  const std::array<u8, 8> payload{};
  const VXLANEnds& ends = kVXLANEnds[0];
  VXLANStage stage(5001), other(5002);
  const std::vector<u8> bytes = encapsulated(stage, vxlan_frame(ends, payload));
  LinkCounters counters;
  IngressFrame got = received(ends, bytes);
  EXPECT_FALSE(other.open_frame(got, counters));
  EXPECT_EQ(counters.refused_vni, 1u);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    IngressFrame cut = received(ends, std::span(bytes).first(n));
    EXPECT_FALSE(stage.open_frame(cut, counters)) << n;
  }
  EXPECT_EQ(counters.refused_vni, 1 + bytes.size());
  IngressFrame elsewhere = received(ends, bytes);
  elsewhere.destination = GID::from_ipv4(0x0a4d0003);
  EXPECT_FALSE(stage.open_frame(elsewhere, counters));
}

// RFC 6040, 4.2: congestion between the endpoints is marked on the outer header.
TEST(VXLANStageTest, TheOuterMarkCounts) {
  const std::array<u8, 8> payload{};
  const VXLANEnds& ends = kVXLANEnds[0];
  VXLANStage stage(5001);
  const std::vector<u8> bytes = encapsulated(stage, vxlan_frame(ends, payload));
  IngressFrame got = received(ends, bytes);
  got.traffic_class = 3;
  LinkCounters counters;
  ASSERT_TRUE(stage.open_frame(got, counters));
  EXPECT_EQ(got.traffic_class, 0x6b);
}

}  // namespace
}  // namespace verbena::host
