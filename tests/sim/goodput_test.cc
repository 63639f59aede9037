// The goodput of a wire with many users and a small buffer: losses cost some of it, never most of
// it. Also the goodput of a sender that sends little at a time: it notices a lost last packet after
// some round trips, not after the ACK timeout.
#include <gtest/gtest.h>

#include "tests/sim/host.h"

namespace verbena::sim {
namespace {

struct Load {
  const char* name;
  SendOp op;
  u32 qps;
  u32 messages;  // of each QP
  u32 bytes;     // of each message
  double loss;
  i64 buffer_bytes;
  double least;        // share of the line rate
  u32 at_once = 0;     // messages of each QP in flight; 0: all
  u8 ack_timeout = 8;  // 1 ms
  Retransmission retransmission = Retransmission::kGoBackN;
};

class Goodput : public ::testing::TestWithParam<Load> {};

TEST_P(Goodput, StaysAboveItsShare) {
  const Load& load = GetParam();
  World world(1);
  const auto config = [&load](u32 index) {
    DeviceConfig c = device_config(index, 1, false);
    c.path.window_packets = 256;
    c.path.window_bytes = 256 * 1024;
    c.retransmission = load.retransmission;
    return c;
  };
  Host a(world, world.add_node({.device = config(0), .egress = Egress::kEager}), 0);
  Host b(world, world.add_node({.device = config(1), .egress = Egress::kEager}), 0);
  LinkConfig link;
  link.rate = gbps(20);
  link.delay = us(5);
  link.faults.loss = load.loss;
  link.max_queueing = ps(link.rate.ps_per_byte * load.buffer_bytes);
  world.join(a.node, b.node, link);
  u64 zone = 0;
  for (Host* host : {&a, &b}) {
    zone = host->arena.carve(load.bytes);
    host->arena.seal();
  }
  const AccessFlags all = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;
  const MRKeys key_a = a.arena.open(zone, load.bytes, all);
  const MRKeys key_b = b.arena.open(zone, load.bytes, all);
  QPConfig qp;
  qp.ack_timeout = load.ack_timeout;
  for (u32 i = 0; i < load.qps; ++i) {
    for (Host* host : {&a, &b})
      host->create_qp(QPType::kRC, {.depth = load.messages}, {.depth = 1}, false);
    connect(a, a.qps[i], qp, b, b.qps[i], qp);
  }
  const Time start = world.now();
  std::vector<u32> left(load.qps, load.messages);
  const auto post = [&](u64 i) {
    if (left[i] == 0) return;
    --left[i];
    const SGE sge = {a.arena.address(zone), load.bytes, key_a.l_key};
    SendWR wr;
    wr.wr_id = i;
    wr.op = load.op;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    wr.remote_address = b.arena.address(zone);
    wr.r_key = key_b.r_key;
    EXPECT_EQ(a.node.post_send(a.qps[i], wr), PostError::kOk);
  };
  const u32 at_once = load.at_once == 0 ? load.messages : load.at_once;
  for (u32 n = 0; n < at_once; ++n)
    for (u32 i = 0; i < load.qps; ++i) post(i);
  Time last;
  u64 done = 0;
  a.node.on_activity = [&] {
    for (const CQE& cqe : a.node.poll(a.cq)) {
      EXPECT_EQ(cqe.status, WQEStatus::kSuccess) << to_string(cqe);
      last = world.now();
      ++done;
      post(cqe.wr_id);
    }
  };
  ASSERT_TRUE(world.run_until_idle(sec(100))) << world.report();
  ASSERT_EQ(done, load.qps * load.messages) << world.report();
  const double bytes = static_cast<double>(done) * load.bytes;
  const double line =
      static_cast<double>((last - start).ps()) / static_cast<double>(link.rate.ps_per_byte);
  RecordProperty("share", std::to_string(bytes / line));
  EXPECT_GT(bytes / line, load.least);
}

constexpr i64 kLarge = 64 << 20, kSmall = 200 << 10;
INSTANTIATE_TEST_SUITE_P(
    Loads, Goodput,
    ::testing::Values(
        Load{"OneWriter", SendOp::kRDMAWrite, 1, 50, 1 << 20, 0, kLarge, 0.85},
        Load{"OneReader", SendOp::kRDMARead, 1, 50, 1 << 20, 0, kLarge, 0.85},
        Load{"OneWriterLossy", SendOp::kRDMAWrite, 1, 20, 1 << 20, 0.001, kLarge, 0.5},
        Load{"OneReaderLossy", SendOp::kRDMARead, 1, 20, 1 << 20, 0.001, kLarge, 0.3},
        Load{"ManyWritersSmallBuffer", SendOp::kRDMAWrite, 16, 40, 65536, 0, kSmall, 0.3},
        Load{"ManyReadersSmallBuffer", SendOp::kRDMARead, 16, 40, 65536, 0, kSmall, 0.3},
        // Both lose one packet in a hundred each way; the ACK timeout is 0.27 s.
        Load{"OneMessageAtATime", SendOp::kRDMAWrite, 1, 2000, 4096, 0.01, kLarge, 0.08, 1, 16},
        Load{"OneReadAtATime", SendOp::kRDMARead, 1, 2000, 4096, 0.01, kLarge, 0.08, 1, 16},
        Load{"FourAtATime", SendOp::kRDMAWrite, 4, 500, 65536, 0.01, kLarge, 0.3, 4, 16}),
    [](const auto& p) { return std::string(p.param.name); });

constexpr Retransmission kSelective = Retransmission::kSelectiveRepeat;
INSTANTIATE_TEST_SUITE_P(SelectiveRepeat, Goodput,
                         ::testing::Values(Load{"OneWriter", SendOp::kRDMAWrite, 1, 50, 1 << 20, 0,
                                                kLarge, 0.85, 0, 8, kSelective},
                                           Load{"OneWriterLossy", SendOp::kRDMAWrite, 1, 20,
                                                1 << 20, 0.001, kLarge, 0.85, 0, 8, kSelective},
                                           Load{"OneReaderLossy", SendOp::kRDMARead, 1, 20, 1 << 20,
                                                0.001, kLarge, 0.85, 0, 8, kSelective},
                                           Load{"OneWriterVeryLossy", SendOp::kRDMAWrite, 1, 20,
                                                1 << 20, 0.01, kLarge, 0.75, 0, 16, kSelective},
                                           Load{"OneReaderVeryLossy", SendOp::kRDMARead, 1, 20,
                                                1 << 20, 0.01, kLarge, 0.75, 0, 16, kSelective},
                                           Load{"ManyWritersSmallBuffer", SendOp::kRDMAWrite, 16,
                                                40, 65536, 0, kSmall, 0.85, 0, 8, kSelective},
                                           Load{"ManyReadersSmallBuffer", SendOp::kRDMARead, 16, 40,
                                                65536, 0, kSmall, 0.85, 0, 8, kSelective}),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace verbena::sim
