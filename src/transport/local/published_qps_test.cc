#include "transport/local/published_qps.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbena {
namespace {

constexpr QPN kTarget{0x4011}, kRequester{0x8022};

QPAttributes qp(QPN own, QPN peer, const char* from, const char* to) {
  QPAttributes attributes;
  attributes.state = QPState::kRTS;
  attributes.qpn = own;
  attributes.dest_qp = peer;
  attributes.pd = PDId{7};
  attributes.path.source = *GID::parse(from);
  attributes.path.destination = *GID::parse(to);
  attributes.sq_psn = attributes.rq_psn = PSN(0x1234);
  attributes.remote_access = Access::kRemoteWrite;
  return attributes;
}

class PublishedQPsTest : public testing::Test {
 protected:
  bool accepts(const QPAttributes& requester) const {
    PublishedQP found;
    return qps_->find(kTarget, found) && found.accepts_from(requester);
  }

  std::unique_ptr<PublishedQPs> qps_ = std::make_unique<PublishedQPs>();
  QPPublisher publisher_{*qps_};
  QPAttributes target_ = qp(kTarget, kRequester, "127.0.0.1", "127.0.0.2");
  QPAttributes requester_ = qp(kRequester, kTarget, "127.0.0.2", "127.0.0.1");
};

TEST_F(PublishedQPsTest, ThePeerIsAccepted) {
  EXPECT_FALSE(accepts(requester_));
  publisher_.update(target_);
  EXPECT_TRUE(accepts(requester_));
  PublishedQP found;
  ASSERT_TRUE(qps_->find(kTarget, found));
  EXPECT_EQ(found.pd, PDId{7});
  EXPECT_EQ(found.access, AccessFlags(Access::kRemoteWrite));
}

TEST_F(PublishedQPsTest, NobodyElseIs) {
  publisher_.update(target_);
  QPAttributes other = requester_;
  other.qpn = QPN{0x8023};
  EXPECT_FALSE(accepts(other));
  other = requester_;
  other.sq_psn = PSN(0x1235);  // of an earlier connection between QPs of these numbers
  EXPECT_FALSE(accepts(other));
  other = requester_;
  other.p_key = PKey{0x7fff};
  EXPECT_FALSE(accepts(other));
  other = requester_;
  other.path_mtu = MTU::k256;
  EXPECT_FALSE(accepts(other)) << "its packets would have other lengths";
  other = requester_;
  other.path.source = *GID::parse("127.0.0.3");
  EXPECT_FALSE(accepts(other));
  other = requester_;
  other.path.destination = *GID::parse("127.0.0.3");
  EXPECT_FALSE(accepts(other));
}

TEST_F(PublishedQPsTest, ReadsNeedARightAndResources) {
  const auto permits = [this](Access need) {
    publisher_.update(target_);
    PublishedQP found;
    return qps_->find(kTarget, found) && found.permits(need, requester_);
  };
  EXPECT_TRUE(permits(Access::kRemoteWrite));
  EXPECT_FALSE(permits(Access::kRemoteRead)) << "no right";
  target_.remote_access = Access::kRemoteWrite | Access::kRemoteRead;
  requester_.max_rd_atomic = 2;
  for (const u8 resources : {u8{0}, u8{1}, u8{2}, u8{3}}) {
    target_.max_dest_rd_atomic = resources;
    EXPECT_EQ(permits(Access::kRemoteRead), resources >= 2);
  }
  EXPECT_TRUE(permits(Access::kRemoteWrite));
}

TEST_F(PublishedQPsTest, OnlyInStatesThatTakeRequestsWithoutAnEvent) {
  for (const QPState state : {QPState::kReset, QPState::kInit, QPState::kRTR, QPState::kRTS,
                              QPState::kSQD, QPState::kSQE, QPState::kError}) {
    target_.state = state;
    publisher_.update(target_);
    EXPECT_EQ(accepts(requester_), state == QPState::kRTS || state == QPState::kSQD);
  }
}

TEST_F(PublishedQPsTest, InRTROnceAPacketHasCome) {
  target_.state = QPState::kRTR;
  publisher_.update(target_);
  EXPECT_FALSE(accepts(requester_));
  publisher_.on_established(target_);
  EXPECT_TRUE(accepts(requester_));
  target_.type = QPType::kUC;
  publisher_.withdraw(kTarget);
  publisher_.on_established(target_);
  EXPECT_FALSE(accepts(requester_));
}

TEST_F(PublishedQPsTest, OnlyReliableConnections) {
  for (const QPType type : {QPType::kUC, QPType::kUD, QPType::kXRCTarget}) {
    target_.type = type;
    publisher_.update(target_);
    EXPECT_FALSE(accepts(requester_));
  }
}

TEST_F(PublishedQPsTest, WhatIsWithdrawnIsTold) {
  publisher_.withdraw(kTarget);
  publisher_.update(target_);
  EXPECT_FALSE(publisher_.take_withdrawn());
  target_.remote_access = {};
  publisher_.update(target_);  // a right is gone
  EXPECT_TRUE(publisher_.take_withdrawn());
  target_.state = QPState::kError;
  publisher_.update(target_);
  EXPECT_TRUE(publisher_.take_withdrawn());
  EXPECT_FALSE(accepts(requester_));
  publisher_.withdraw(kTarget);
  EXPECT_FALSE(publisher_.take_withdrawn());
}

// iWARP: both ends name the same connection, and know no QPN of each other.
TEST_F(PublishedQPsTest, ATCPConnectionTellsThePeer) {
  target_.dest_qp = requester_.dest_qp = QPN{};
  target_.tcp = {target_.path.source, target_.path.destination, 4000, 50'000};
  requester_.tcp = target_.tcp.reversed();
  publisher_.update(target_);
  EXPECT_TRUE(accepts(requester_));
  QPAttributes other = requester_;
  other.tcp.local_port = 50'001;
  EXPECT_FALSE(accepts(other));
  other.tcp = target_.tcp;  // its own end
  EXPECT_FALSE(accepts(other));
  other.tcp = {};
  EXPECT_FALSE(accepts(other));
  publisher_.withdraw(kTarget);
  EXPECT_FALSE(accepts(requester_));
}

}  // namespace
}  // namespace verbena
