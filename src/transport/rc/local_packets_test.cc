// A responder whose peer is on the same host: transport/local/local_packets.h.
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

struct Acknowledgement {
  QPN from;
  PSN psn;
  AETH aeth;
};

class NearWay final : public LocalPackets {
 public:
  bool take(const QPAttributes&, const TxPacket&) override { return false; }
  bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) override {
    if (is_there) acknowledgements.push_back({qp.qpn, psn, aeth});
    return is_there;
  }
  void flush() override {}

  bool is_there = true;
  std::vector<Acknowledgement> acknowledgements;
};

class RCLocalPacketsTest : public testing::Test {
 protected:
  RCLocalPacketsTest() : pair(near()) { pair.receive(9, 0, 100); }
  RCOptions near() {
    RCOptions options;
    options.local_packets = &way;
    return options;
  }
  // What b answers.
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

TEST_F(RCLocalPacketsTest, RefusalsArePackets) {
  pair.send(1, 10);
  pair.send(2, 10);  // without a receive
  EXPECT_EQ(ops_of(answer()), (std::vector<Op>{Op::kAcknowledge}));
  EXPECT_EQ(way.acknowledgements.size(), 1u);
}

}  // namespace
}  // namespace verbena::test
