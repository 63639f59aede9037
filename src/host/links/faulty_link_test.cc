#include "host/links/faulty_link.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "faults/spec.h"
#include "host/os/clock.h"
#include "wire/ib/packet.h"

namespace verbena::host {
namespace {

using faults::HeldFrame;

const GID kHere = *GID::parse("10.0.0.1"), kThere = *GID::parse("10.0.0.2");
constexpr QPN kLocal{0x11}, kPeer{0x22};

class RecordingLink final : public Link {
 public:
  void append(const EgressFrame& frame) override { sent.push_back(HeldFrame::of(frame)); }
  void flush() override { ++flushes; }
  bool receive(Look) override { return !arriving.empty(); }
  bool poll_frame(IngressFrame& out, Time) override {
    if (arriving.empty()) return false;
    current_ = std::move(arriving.front());
    arriving.pop_front();
    out = current_->ingress();
    return true;
  }
  std::span<const int> descriptors() const override { return {}; }
  Expected<void> join_multicast(const GID&) override { return {}; }
  void leave_multicast(const GID&) override {}
  void leave() override { left = true; }
  void abandon() override {}
  const LinkCounters& counters() const override { return counters_; }

  std::vector<HeldFrame> sent;
  std::deque<HeldFrame> arriving;
  int flushes = 0;
  bool left = false;

 private:
  std::optional<HeldFrame> current_;
  LinkCounters counters_;
};

EgressFrame request(u32 psn, const GID& source, const GID& destination, QPN to, QPN from) {
  EgressFrame frame;
  const BTH bth{.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = to, .psn = PSN{psn}};
  bth.encode(std::span(frame.headers).first<BTH::kSize>());
  frame.headers_size = BTH::kSize;
  frame.source = source;
  frame.destination = destination;
  frame.source_qp = from;
  return frame;
}
EgressFrame going(u32 psn) { return request(psn, kHere, kThere, kPeer, kLocal); }
HeldFrame coming(u32 psn) { return HeldFrame::of(request(psn, kThere, kHere, kLocal, kPeer)); }

class FaultyLinkTest : public testing::Test {
 protected:
  void use(std::string_view spec) {
    auto below = std::make_unique<RecordingLink>();
    below_ = below.get();
    link_ = std::make_unique<FaultyLink>(
        std::move(below), faults::FaultFilter(*faults::parse_rules(spec), 1, monotonic_now()));
    link_->set_drop_listener(
        [this](faults::Direction direction, const HeldFrame&, std::string_view cause) {
          drops_.push_back((direction == faults::Direction::kTransmit ? "tx " : "rx ") +
                           std::string(cause));
        });
    link_->set_peer_lookup([](QPN local) { return std::optional(QPN{local.value + 0x100}); });
  }
  std::vector<HeldFrame> polled() {
    std::vector<HeldFrame> frames;
    (void)link_->receive(Look::kEverywhere);
    for (IngressFrame in; link_->poll_frame(in, monotonic_now());)
      frames.push_back(HeldFrame::of(in));
    return frames;
  }
  static PacketView decoded(const HeldFrame& frame) {
    const std::span<const u8> bytes = frame.ingress().transport;
    return *PacketView::decode(bytes.first(bytes.size() - kICRCSize));
  }
  void wait_for_timer() const {
    while (monotonic_now() < link_->next_timer()) std::this_thread::yield();
  }

  RecordingLink* below_ = nullptr;
  std::unique_ptr<FaultyLink> link_;
  std::vector<std::string> drops_;
};

TEST_F(FaultyLinkTest, WhatNoRuleTouchesGoesThrough) {
  use("loss qp=0x999");
  link_->append(going(1));
  EXPECT_EQ(below_->sent, std::vector{HeldFrame::of(going(1))});
  below_->arriving.push_back(coming(1));
  EXPECT_EQ(polled().size(), 1u);
  EXPECT_EQ(link_->next_timer(), Time::never());
}

TEST_F(FaultyLinkTest, DropsAreReportedWithTheirCause) {
  use("loss nth=1");
  link_->append(going(1));
  EXPECT_TRUE(below_->sent.empty());
  use("loss dir=rx");
  below_->arriving.push_back(coming(1));
  EXPECT_TRUE(polled().empty());
  EXPECT_EQ(drops_, (std::vector<std::string>{"tx loss nth=1", "rx loss dir=rx"}));
}

TEST_F(FaultyLinkTest, LateFramesComeWhenTheTimerIsDue) {
  use("delay by=2ms");
  link_->append(going(1));
  link_->flush();
  EXPECT_TRUE(below_->sent.empty());
  wait_for_timer();
  link_->flush();
  EXPECT_EQ(below_->sent, std::vector{HeldFrame::of(going(1))});

  below_->arriving.push_back(coming(5));
  EXPECT_TRUE(polled().empty());
  wait_for_timer();
  EXPECT_TRUE(link_->receive(Look::kLikely));
  EXPECT_EQ(polled().size(), 1u);
}

TEST_F(FaultyLinkTest, CopiesGoTwice) {
  use("duplicate by=0us");
  link_->append(going(1));
  link_->flush();
  EXPECT_EQ(below_->sent.size(), 2u);
}

TEST_F(FaultyLinkTest, ARefusedRequestOfOursIsAnsweredInThePeersPlace) {
  use("nak code=remote-access");
  link_->append(going(7));
  EXPECT_TRUE(below_->sent.empty());
  const std::vector<HeldFrame> answers = polled();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(decoded(answers[0]).headers.bth.dest_qp, kLocal);
  EXPECT_EQ(decoded(answers[0]).headers.bth.psn, PSN{7});
  EXPECT_EQ(decoded(answers[0]).headers.aeth.kind, AETHKind::kNAK);
}

TEST_F(FaultyLinkTest, ARefusedRequestOfThePeerIsAnsweredToItsQP) {
  use("rnr timer=3");
  below_->arriving.push_back(coming(7));
  EXPECT_TRUE(polled().empty());
  link_->flush();
  ASSERT_EQ(below_->sent.size(), 1u);
  EXPECT_EQ(decoded(below_->sent[0]).headers.bth.dest_qp, QPN{kLocal.value + 0x100});
  EXPECT_EQ(decoded(below_->sent[0]).headers.aeth.value, 3);
}

TEST_F(FaultyLinkTest, FaultsOfObjectsAreToldOnce) {
  use("qp-error nth=1; cq-overrun nth=2");
  EXPECT_EQ(link_->poll_object_fault(), std::nullopt);
  link_->append(going(1));
  EXPECT_EQ(below_->sent.size(), 0u);
  const auto first = link_->poll_object_fault();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, ObjectFault::Kind::kBreakQP);
  EXPECT_EQ(first->qp, kLocal);
  EXPECT_EQ(link_->poll_object_fault(), std::nullopt);
  below_->arriving.push_back(coming(1));
  (void)polled();
  EXPECT_EQ(link_->poll_object_fault()->kind, ObjectFault::Kind::kOverrunCQ);
}

TEST_F(FaultyLinkTest, LeavingSendsWhatWaits) {
  use("delay by=1s");
  link_->append(going(1));
  link_->leave();
  EXPECT_EQ(below_->sent.size(), 1u);
  EXPECT_TRUE(below_->left);
}

TEST_F(FaultyLinkTest, ReleasedTheLinkBelowLivesOn) {
  use("loss");
  const std::unique_ptr<Link> below = link_->release();
  link_.reset();
  below->append(going(1));
  EXPECT_EQ(below_->sent.size(), 1u);
}

}  // namespace
}  // namespace verbena::host
