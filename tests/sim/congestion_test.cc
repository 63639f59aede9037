// Congestion marks, CNPs and rates, end to end: who is marked slows down, and comes back when the
// marks end.
#include <gtest/gtest.h>

#include "congestion/presets.h"
#include "tests/sim/host.h"

namespace verbena::sim {
namespace {

constexpr u32 kBytes = 64 << 10;

// A writer and a reader of one peer, which ask for more as soon as they have something.
struct Stream {
  explicit Stream(SendOp operation)
      : op(operation),
        a(world, world.add_node({.device = config(0)}), 0),
        b(world, world.add_node({.device = config(1)}), 0) {
    world.join(a.node, b.node, {.rate = gbps(20), .delay = us(2)});
    for (Host* host : {&a, &b}) {
      zone = host->arena.carve(kBytes);
      host->arena.seal();
      host->create_qp(QPType::kRC, {.depth = 16}, {.depth = 1}, false);
    }
    const AccessFlags all = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;
    key_a = a.arena.open(zone, kBytes, all);
    key_b = b.arena.open(zone, kBytes, all);
    connect(a, a.qps[0], {}, b, b.qps[0], {});
    a.node.on_activity = [this] {
      for (const CQE& cqe : a.node.poll(a.cq)) {
        EXPECT_EQ(cqe.status, WQEStatus::kSuccess);
        bytes += kBytes;
        post();
      }
    };
    for (int i = 0; i < 8; ++i) post();
  }
  static DeviceConfig config(u32 index) {
    DeviceConfig c = device_config(index, 1, false);
    c.congestion = *congestion_named("dcqcn_paper", verbena::gbps(20));
    c.path.min_probe_timeout = ms(4);
    return c;
  }
  void post() {
    const SGE sge = {a.arena.address(zone), kBytes, key_a.l_key};
    SendWR wr;
    wr.op = op;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    wr.remote_address = b.arena.address(zone);
    wr.r_key = key_b.r_key;
    ASSERT_EQ(a.node.post_send(a.qps[0], wr), PostError::kOk);
  }
  // Returns the payload rate during the next `time`.
  double gbps_during(Duration time) {
    const u64 before = bytes;
    world.run_for(time);
    return static_cast<double>(bytes - before) * 8e-9 / time.seconds();
  }
  // The link that the data takes.
  Link& data_link() { return op == SendOp::kRDMARead ? b.node.link() : a.node.link(); }
  EngineCounters counters() { return a.node.device().counters_of(a.qps[0]); }

  World world{1};
  SendOp op;
  Host a, b;
  u64 zone = 0, bytes = 0;
  MRKeys key_a, key_b;
};

class Congestion : public ::testing::TestWithParam<SendOp> {};

TEST_P(Congestion, MarksSlowAStreamAndItRecovers) {
  Stream stream(GetParam());
  EXPECT_GT(stream.gbps_during(ms(2)), 16);
  stream.data_link().congest();
  EXPECT_LT(stream.gbps_during(ms(1)), 16);
  const double slow = stream.gbps_during(ms(5));
  EXPECT_LT(slow, 1);  // the least rate is 20 Mb/s
  EXPECT_GT(slow, 0);
  stream.data_link().relieve();
  double last = slow;
  for (int i = 0; i < 3; ++i) {
    const double rate = stream.gbps_during(ms(10));
    EXPECT_GE(rate, last * 0.95);
    last = rate;
  }
  (void)stream.gbps_during(ms(40));
  EXPECT_GT(stream.gbps_during(ms(5)), 16);
  // Slow is not lost.
  EXPECT_EQ(stream.counters().local_ack_timeout_err, 0u);
}

INSTANTIATE_TEST_SUITE_P(Operations, Congestion,
                         ::testing::Values(SendOp::kRDMAWrite, SendOp::kRDMARead),
                         [](const auto& p) {
                           return p.param == SendOp::kRDMARead ? "Read" : "Write";
                         });

}  // namespace
}  // namespace verbena::sim
