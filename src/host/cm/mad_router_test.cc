#include "host/cm/mad_router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "connect/comm_id_space.h"
#include "host/os/random.h"
#include "tests/support/clock.h"
#include "wire/ib/cm/message.h"

namespace verbena::host {
namespace {

using test::kStart;
constexpr GID kHere = GID::from_ipv4(0x0a000001), kPeer = GID::from_ipv4(0x0a000002);

// Two processes' worth of channels on one address.
class MADRouterTest : public ::testing::Test {
 protected:
  ~MADRouterTest() override {
    ::unlink((folder_ + "/ports").c_str());
    ::rmdir(folder_.c_str());
  }
  PortDirectory open_ports() const {
    return std::move(*PortDirectory::open_file(folder_ + "/ports"));
  }
  static std::string make_folder() {
    std::string name = "/tmp/verbena-mad-router-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }
  IngressFrame frame_of(const cm::Body& body) {
    const cm::MADBytes mad = cm::Message{.transaction_id = 1, .body = body}.encode();
    packet_.assign(BTH::kSize + DETH::kSize, 0);
    packet_.insert(packet_.end(), mad.begin(), mad.end());
    packet_.insert(packet_.end(), kICRCSize, 0);
    return {.source = kPeer, .destination = kHere, .transport = packet_};
  }
  bool reaches_other() {
    if (other_.receive() != ProcessChannel::Received::kFrame) return false;
    return std::ranges::equal(other_.frame().transport, packet_);
  }
  BoundPort bind_at(u32 slot) {
    const std::vector<PortPlace> places{{.address = kHere, .slot = slot}};
    return ports_.bind({.places = places}).value();
  }
  u16 listen_at(u32 slot) {
    const BoundPort bound = bind_at(slot);
    EXPECT_TRUE(ports_.listen(bound.owner));
    return bound.port;
  }
  static cm::REQ request_for(u16 port) {
    return {.local_comm_id = CommId{1}, .service_id = service_id_of({.port = port})};
  }
  static CommId id_at(u32 slot) { return CommId{(slot << kCommIdRandomBits) | 7}; }

  const std::string folder_ = make_folder();
  ProcessChannel ours_ = std::move(*ProcessChannel::claim(random_u64()));
  ProcessChannel other_ = std::move(*ProcessChannel::claim(random_u64()));
  PortDirectory ports_ = open_ports();
  MADRouter router_{ours_, open_ports()};
  std::vector<u8> packet_;
};

using Outcome = MADRouter::Outcome;

TEST_F(MADRouterTest, AnswersGoToWhomTheyName) {
  EXPECT_EQ(router_.route(frame_of(cm::REP{.remote_comm_id = id_at(ours_.slot())}), kStart),
            Outcome::kOurs);
  EXPECT_EQ(router_.route(frame_of(cm::REP{.remote_comm_id = id_at(other_.slot())}), kStart),
            Outcome::kHandedOn);
  EXPECT_TRUE(reaches_other());
}

TEST_F(MADRouterTest, WhatIsForNobodyOrTheDeadIsOurs) {
  const u32 dead = other_.slot();
  other_.close();
  EXPECT_EQ(router_.route(frame_of(cm::DREQ{.remote_comm_id = id_at(dead)}), kStart),
            Outcome::kOurs);
  EXPECT_EQ(router_.route(frame_of(cm::DREQ{.remote_comm_id = CommId{0xffffffff}}), kStart),
            Outcome::kOurs);
}

TEST_F(MADRouterTest, RequestsGoToTheListener) {
  const IngressFrame frame = frame_of(request_for(listen_at(other_.slot())));
  EXPECT_EQ(router_.route(frame, kStart), Outcome::kHandedOn);
  EXPECT_TRUE(reaches_other());
  const IngressFrame own = frame_of(request_for(listen_at(ours_.slot())));
  EXPECT_EQ(router_.route(own, kStart), Outcome::kOurs);
  EXPECT_EQ(router_.next_timer(), Time::never());
}

TEST_F(MADRouterTest, ARequestThatNobodyListensForIsOursAfterAMoment) {
  EXPECT_EQ(router_.route(frame_of(request_for(7000)), kStart), Outcome::kKept);
  IngressFrame out;
  Time now = kStart;
  for (; now < kStart + MADRouter::kGrace; now = router_.next_timer()) {
    EXPECT_FALSE(router_.poll_kept(out, now));
    ASSERT_LE(router_.next_timer(), now + MADRouter::kLookInterval);
  }
  ASSERT_TRUE(router_.poll_kept(out, now));
  EXPECT_TRUE(std::ranges::equal(out.transport, packet_));
  EXPECT_EQ(out.source, kPeer);
  EXPECT_FALSE(router_.poll_kept(out, now));
  EXPECT_EQ(router_.next_timer(), Time::never());
}

TEST_F(MADRouterTest, AListenerThatComesLateGetsItsRequest) {
  const BoundPort bound = bind_at(other_.slot());
  EXPECT_EQ(router_.route(frame_of(request_for(bound.port)), kStart), Outcome::kKept);
  IngressFrame out;
  EXPECT_FALSE(router_.poll_kept(out, kStart + MADRouter::kLookInterval));
  ASSERT_TRUE(ports_.listen(bound.owner));
  EXPECT_FALSE(router_.poll_kept(out, router_.next_timer())) << "not ours";
  EXPECT_TRUE(reaches_other());
  EXPECT_EQ(router_.next_timer(), Time::never());
}

TEST_F(MADRouterTest, WhatIsKeptIsBounded) {
  for (std::size_t i = 0; i <= MADRouter::kMaxKept; ++i)
    EXPECT_EQ(router_.route(frame_of(request_for(7000)), kStart),
              i < MADRouter::kMaxKept ? Outcome::kKept : Outcome::kOurs);
}

// More than the kernel queues between two processes.
TEST_F(MADRouterTest, WhatFindsNoRoomIsHandedOnLater) {
  constexpr int kCount = 400;
  const IngressFrame frame = frame_of(cm::REP{.remote_comm_id = id_at(other_.slot())});
  bool any_waits = false;
  for (int i = 0; i < kCount; ++i) {
    const Outcome outcome = router_.route(frame, kStart);
    ASSERT_TRUE(outcome == Outcome::kHandedOn || outcome == Outcome::kKept) << i;
    any_waits |= outcome == Outcome::kKept;
  }
  EXPECT_TRUE(any_waits);
  int reached = 0;
  Time now = kStart;
  for (;;) {
    while (reaches_other()) ++reached;
    now = router_.next_timer();
    if (now == Time::never()) break;
    IngressFrame out;
    ASSERT_FALSE(router_.poll_kept(out, now)) << "not ours";
  }
  EXPECT_EQ(reached, kCount);
}

TEST_F(MADRouterTest, WhatAStoppedProcessHasNoRoomForIsDroppedAfterAMoment) {
  const IngressFrame frame = frame_of(cm::REP{.remote_comm_id = id_at(other_.slot())});
  for (int i = 0; i < 400; ++i) (void)router_.route(frame, kStart);
  IngressFrame out;
  Time now = kStart;
  for (; router_.next_timer() != Time::never(); now = router_.next_timer()) {
    ASSERT_LE(now, kStart + MADRouter::kGrace + MADRouter::kRetryInterval);
    ASSERT_FALSE(router_.poll_kept(out, now));
  }
  EXPECT_GE(now, kStart + MADRouter::kGrace - MADRouter::kRetryInterval);
}

TEST_F(MADRouterTest, ARejectionOfNobodyKnownGoesToAll) {
  for (const u32 slot : {ours_.slot(), other_.slot()}) (void)bind_at(slot);
  EXPECT_EQ(router_.route(frame_of(cm::REJ{.local_comm_id = CommId{9}}), kStart), Outcome::kOurs);
  EXPECT_TRUE(reaches_other());
}

TEST_F(MADRouterTest, WhatIsNoMADIsForTheDeviceToCount) {
  for (const std::size_t size : {0u, 20u, 100u, 300u}) {
    packet_.assign(size, 0);
    EXPECT_EQ(router_.route({.source = kPeer, .destination = kHere, .transport = packet_}, kStart),
              Outcome::kOurs);
  }
}

}  // namespace
}  // namespace verbena::host
