#include "faults/held_frame.h"

#include <gtest/gtest.h>

#include <numeric>

#include "faults/frame_queue.h"
#include "wire/eth/ecn.h"
#include "wire/ib/packet.h"
#include "wire/roce/icrc.h"

namespace verbena::faults {
namespace {

const GID kHere = *GID::parse("10.0.0.1"), kThere = *GID::parse("10.0.0.2");
constexpr QPN kLocal{0x11}, kPeer{0x22};

class HeldFrameTest : public testing::Test {
 protected:
  HeldFrameTest() {
    std::iota(payload_.begin(), payload_.end(), u8{1});
    BTH bth{.opcode = {Service::kRC, Op::kSendOnly}, .pad_count = 1, .dest_qp = kPeer};
    bth.psn = PSN{77};
    bth.encode(std::span(frame_.headers).first<BTH::kSize>());
    frame_.headers_size = BTH::kSize;
    frame_.pad_count = 1;
    frame_.source = kHere;
    frame_.destination = kThere;
    frame_.source_qp = kLocal;
    frame_.udp_source_port = 50000;
    frame_.payload.add(std::span<const u8>(payload_).first(3));
    frame_.payload.add(std::span<const u8>(payload_).subspan(3));
  }
  static bool icrc_is_right(const IngressFrame& f) {
    const u32 icrc = icrc_of({.source = f.source,
                              .destination = f.destination,
                              .udp_source_port = f.udp_source_port,
                              .identification = f.identification},
                             f.transport.first(f.transport.size() - kICRCSize));
    std::array<u8, kICRCSize> bytes{};
    store_icrc(icrc, bytes);
    return std::ranges::equal(bytes, f.transport.last<kICRCSize>());
  }
  static PacketView decoded(const IngressFrame& f) {
    return *PacketView::decode(f.transport.first(f.transport.size() - kICRCSize));
  }

  std::vector<u8> payload_ = std::vector<u8>(11);
  EgressFrame frame_;
};

TEST_F(HeldFrameTest, IsTheFrameOfTheWire) {
  const HeldFrame held = HeldFrame::of(frame_, 5);
  const IngressFrame in = held.ingress();
  EXPECT_TRUE(icrc_is_right(in));
  EXPECT_EQ(in.identification, 5);
  const PacketView packet = decoded(in);
  EXPECT_EQ(packet.headers.bth.psn, PSN{77});
  EXPECT_TRUE(std::ranges::equal(packet.payload, payload_));
  EXPECT_EQ(HeldFrame::of(in).ingress().transport.size(), in.transport.size());
}

TEST_F(HeldFrameTest, GoesOutAsItCame) {
  const HeldFrame held = HeldFrame::of(frame_);
  const EgressFrame out = held.egress();
  EXPECT_EQ(out.transport_size(), frame_.transport_size());
  EXPECT_EQ(out.source_qp, kLocal);
  EXPECT_EQ(out.udp_source_port, 50000);
  EXPECT_EQ(HeldFrame::of(out), held);
}

TEST_F(HeldFrameTest, ABadICRCStaysBadOnBothWays) {
  HeldFrame held = HeldFrame::of(frame_);
  held.corrupt({.bits = 3, .good_icrc = false, .seed = 9});
  EXPECT_FALSE(icrc_is_right(held.ingress()));
  EXPECT_NE(held.egress().icrc_flip, 0u);
}

TEST_F(HeldFrameTest, AGoodICRCOverOtherPayload) {
  HeldFrame held = HeldFrame::of(frame_);
  held.corrupt({.bits = 1, .good_icrc = true, .seed = 3});
  const IngressFrame in = held.ingress();
  EXPECT_TRUE(icrc_is_right(in));
  EXPECT_EQ(decoded(in).headers.bth.psn, PSN{77});
  EXPECT_NE(held, HeldFrame::of(frame_));
}

TEST_F(HeldFrameTest, Marked) {
  HeldFrame held = HeldFrame::of(frame_);
  held.mark();
  EXPECT_EQ(ecn_of(held.ingress().traffic_class), ECN::kCE);
}

TEST_F(HeldFrameTest, AnswersToBothSides) {
  const Verdict::Answer nak{AETHKind::kNAK, 2};
  const HeldFrame to_us = HeldFrame::answer_to(frame_, nak);
  const IngressFrame in = to_us.ingress();
  EXPECT_EQ(in.source, kThere);
  EXPECT_TRUE(icrc_is_right(in));
  EXPECT_EQ(decoded(in).headers.bth.dest_qp, kLocal);
  EXPECT_EQ(decoded(in).headers.bth.psn, PSN{77});
  EXPECT_EQ(decoded(in).headers.aeth.kind, AETHKind::kNAK);

  const HeldFrame request = HeldFrame::of(frame_);
  const auto to_peer = HeldFrame::answer_to(request.ingress(), nak, QPN{0x99});
  ASSERT_TRUE(to_peer);
  EXPECT_EQ(to_peer->egress().destination, kHere);
  EXPECT_EQ(to_peer->egress().source_qp, kPeer);
  EXPECT_EQ(decoded(to_peer->ingress()).headers.bth.dest_qp, QPN{0x99});
  IngressFrame runt = request.ingress();
  runt.transport = runt.transport.first(4);
  EXPECT_FALSE(HeldFrame::answer_to(runt, nak, QPN{1}));
}

TEST_F(HeldFrameTest, TruncatedFramesAreHeldToo) {
  const HeldFrame whole = HeldFrame::of(frame_);
  for (std::size_t size = 0; size < whole.ingress().transport.size(); ++size) {
    IngressFrame in = whole.ingress();
    in.transport = in.transport.first(size);
    HeldFrame held = HeldFrame::of(in);
    held.corrupt({.bits = 2, .good_icrc = true, .seed = size});
    held.corrupt({.bits = 2, .good_icrc = false, .seed = size});
    EXPECT_EQ(held.ingress().transport.size(), size);
  }
}

TEST_F(HeldFrameTest, AQueueGivesThemByTimeThenByArrival) {
  FrameQueue queue;
  std::vector<HeldFrame> frames;
  for (u16 id = 0; id < 4; ++id) frames.push_back(HeldFrame::of(frame_, id));
  const Time now = Time() + sec(1);
  EXPECT_EQ(queue.next_due(), Time::never());
  queue.push(now + us(2), frames[2]);
  queue.push(now + us(1), frames[0]);
  queue.push(now + us(1), frames[1]);
  queue.push(now + us(3), frames[3]);
  EXPECT_EQ(queue.next_due(), now + us(1));
  EXPECT_EQ(queue.pop(now), std::nullopt);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(queue.pop(now + us(2)), frames[i]) << i;
  EXPECT_EQ(queue.pop(now + us(2)), std::nullopt);
  EXPECT_EQ(queue.pop(Time::never()), frames[3]);
}

}  // namespace
}  // namespace verbena::faults
