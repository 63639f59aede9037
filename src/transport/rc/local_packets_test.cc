// A responder whose peer is on the same host: transport/local/local_packets.h.
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

struct Acknowledged {
  QPN from;
  PSN psn;
  AETH aeth;
};

class NearWay final : public LocalPackets {
 public:
  bool take(const QPAttributes&, const TxPacket&) override { return false; }
  bool send(const QPAttributes&, const LocalSend&) override { return false; }
  bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) override {
    if (is_there) acknowledgements.push_back({qp.qpn, psn, aeth});
    return is_there;
  }
  void flush() override {}

  bool is_there = true;
  std::vector<Acknowledged> acknowledgements;
};

class RCLocalPacketsTest : public testing::Test {
 protected:
  RCLocalPacketsTest() : pair(near()) { pair.receive(9, 0, 100); }
  RCOptions near() {
    RCOptions options;
    options.local_packets = &way;
    return options;
  }
  // Returns b's answer.
  std::vector<Packet> answer() {
    pair.deliver_all(pair.b, pair.take_all(pair.a));
    return pair.take_all(pair.b);
  }

  NearWay way;
  RCPair pair;
};

TEST_F(RCLocalPacketsTest, AnAcknowledgementGoesAtOnce) {
  pair.send(1, 10);
  EXPECT_TRUE(answer().empty());
  ASSERT_EQ(way.acknowledgements.size(), 1u);
  EXPECT_EQ(way.acknowledgements[0].from, pair.b.qp.qpn);
  EXPECT_EQ(way.acknowledgements[0].psn, PSN(pair.o.psn));
  EXPECT_EQ(way.acknowledgements[0].aeth.kind, AETHKind::kACK);
  EXPECT_EQ(way.acknowledgements[0].aeth.msn, MSN(1));
  EXPECT_EQ(pair.b.engine.counters().local_acknowledgements, 1u);
}

TEST_F(RCLocalPacketsTest, WithoutSuchAWayItIsAPacket) {
  way.is_there = false;
  pair.send(1, 10);
  EXPECT_EQ(ops_of(answer()), (std::vector<Op>{Op::kAcknowledge}));
  EXPECT_EQ(pair.b.engine.counters().local_acknowledgements, 0u);
}

TEST_F(RCLocalPacketsTest, ItDoesNotOvertakeWhatWaits) {
  pair.fetch_add(1, 5, 0);
  pair.send(2, 10);
  EXPECT_EQ(ops_of(answer()), (std::vector<Op>{Op::kAtomicAcknowledge, Op::kAcknowledge}));
  EXPECT_TRUE(way.acknowledgements.empty());
}

// A record of a ring that carries an acknowledgement with a request has the effect of the packet.
TEST_F(RCLocalPacketsTest, OneThatComesWithARequestCompletes) {
  pair.send(1, 10);
  (void)answer();
  const Acknowledged& sent = way.acknowledgements.at(0);
  pair.a.engine.on_acknowledgement({.psn = sent.psn.next(), .aeth = sent.aeth}, pair.now);
  EXPECT_FALSE(pair.a.engine.outputs().reports()) << "of what was never sent";
  pair.a.engine.on_acknowledgement({.psn = sent.psn, .aeth = sent.aeth}, pair.now);
  CQE cqe;
  ASSERT_TRUE(pair.a.engine.poll_send_cqe(cqe));
  EXPECT_EQ(cqe.wr_id, 1u);
  EXPECT_EQ(cqe.status, WQEStatus::kSuccess);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(RCLocalPacketsTest, RefusalsArePackets) {
  pair.send(1, 10);
  pair.send(2, 10);  // without a receive
  EXPECT_EQ(ops_of(answer()), (std::vector<Op>{Op::kAcknowledge}));
  EXPECT_EQ(way.acknowledgements.size(), 1u);
}

}  // namespace
}  // namespace verbena::test
