#include "host/cm/peer_watch.h"

#include <gtest/gtest.h>

#include "connect/comm_id_space.h"
#include "host/os/random.h"
#include "host/sharing/process_channel.h"
#include "tests/support/clock.h"

namespace verbena::host {
namespace {

using test::kStart;
constexpr Time kLater = kStart + PeerWatch::kInterval;

PeerWatch::Connection to_slot(u32 slot, u32 local_id = 1) {
  return {.address = GID::from_ipv4(0x0a000001),
          .local_id = CommId{local_id},
          .remote_id = CommId{slot << kCommIdRandomBits | 5},
          .local_qpn = QPN{0x4001}};
}

class PeerWatchTest : public ::testing::Test {
 protected:
  PeerWatch watch_;
  ProcessChannel peer_ = std::move(*ProcessChannel::claim(random_u64()));
};

TEST_F(PeerWatchTest, SleepsWhileThereIsNothingToWatch) {
  EXPECT_EQ(watch_.next_timer(), Time::never());
  watch_.add(to_slot(peer_.slot()), kStart);
  EXPECT_EQ(watch_.next_timer(), kLater);
  watch_.remove(CommId{1});
  EXPECT_EQ(watch_.next_timer(), Time::never());
}

TEST_F(PeerWatchTest, FindsThoseWhosePeerIsGone) {
  ProcessChannel other = std::move(*ProcessChannel::claim(random_u64()));
  watch_.add(to_slot(peer_.slot(), 1), kStart);
  watch_.add(to_slot(other.slot(), 2), kStart);
  EXPECT_TRUE(watch_.take_bereft(kLater).empty());
  other.close();
  EXPECT_TRUE(watch_.take_bereft(kLater).empty()) << "early";
  const auto bereft = watch_.take_bereft(kLater + PeerWatch::kInterval);
  ASSERT_EQ(bereft.size(), 1u);
  EXPECT_EQ(bereft[0].local_id, CommId{2});
  EXPECT_TRUE(watch_.take_bereft(kLater + PeerWatch::kInterval * 2).empty()) << "told once";
}

TEST_F(PeerWatchTest, TheFarewellIsADisconnectRequestOfThePeer) {
  watch_.add(to_slot(peer_.slot()), kStart);
  watch_.set_qpn(CommId{1}, QPN{0x4007});
  peer_.close();
  const auto bereft = watch_.take_bereft(kLater);
  ASSERT_EQ(bereft.size(), 1u);
  const auto message = cm::Message::decode(PeerWatch::farewell_to(bereft[0]));
  ASSERT_TRUE(message);
  const auto* dreq = std::get_if<cm::DREQ>(&message->body);
  ASSERT_NE(dreq, nullptr);
  EXPECT_EQ(dreq->remote_comm_id, CommId{1});
  EXPECT_EQ(dreq->local_comm_id, bereft[0].remote_id);
  EXPECT_EQ(dreq->remote_qpn, QPN{0x4007});
}

}  // namespace
}  // namespace verbena::host
