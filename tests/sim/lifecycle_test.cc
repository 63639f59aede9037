// A connection is drained, broken off and made again at any moment of its work: what was reported
// complete has happened, nothing is reported twice, nothing of the old life reaches the new one.
// IBTA Vol 1, 10.3.1.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/host.h"
#include "tests/sim/seeds.h"

namespace verbena::sim {
namespace {

constexpr u64 kSlotBytes = 2048;
constexpr u64 kSlots = 20;

class Life {
 public:
  explicit Life(World& world)
      : world_(world),
        a_(world, world.add_node({.device = device_config(0, 1, false)}), 0),
        b_(world, world.add_node({.device = device_config(1, 2, false)}), 0x1000) {
    LinkConfig link;
    link.delay = us(static_cast<i64>(world.prng().in(1, 10)));
    link.faults = {.loss = 0.02, .reorder = 0.02, .duplicate = 0.02};
    world.join(a_.node, b_.node, link);
    for (Host* host : {&a_, &b_}) {
      host->create_qp(QPType::kRC, {.depth = 64, .max_sge = 1}, {.depth = 64, .max_sge = 1}, false);
      zone_ = host->arena.carve(kSlotBytes * kSlots);
      host->arena.seal();
    }
    const AccessFlags all = Access::kLocalWrite | Access::kRemoteWrite;
    key_a_ = a_.arena.open(zone_, kSlotBytes * kSlots, all);
    key_b_ = b_.arena.open(zone_, kSlotBytes * kSlots, all);
    connect_both();
  }

  void connect_both() {
    config_.psn = PSN(static_cast<u32>(world_.prng().next()));
    connect(a_, a_.qps[0], config_, b_, b_.qps[0], config_);
  }
  // One WRITE into each slot, one SEND behind each.
  void post_all() {
    for (u64 i = 0; i < kSlots; ++i) {
      const SGE into = {b_.arena.address(zone_), 0, key_b_.l_key};
      const RecvWR receive{.wr_id = i, .sg_list = {&into, 1}};
      ASSERT_EQ(b_.node.post_receive(b_.qps[0], receive), PostError::kOk);
    }
    for (u64 i = 0; i < kSlots; ++i) {
      const SGE from = {a_.arena.address(zone_ + i * kSlotBytes), kSlotBytes, key_a_.l_key};
      SendWR write;
      write.op = SendOp::kRDMAWrite;
      write.wr_id = 2 * i;
      write.signaled = true;
      write.sg_list = {&from, 1};
      write.remote_address = b_.arena.address(zone_ + i * kSlotBytes);
      write.r_key = key_b_.r_key;
      ASSERT_EQ(a_.node.post_send(a_.qps[0], write), PostError::kOk);
      SendWR send;
      send.wr_id = 2 * i + 1;
      send.signaled = true;
      ASSERT_EQ(a_.node.post_send(a_.qps[0], send), PostError::kOk);
    }
  }
  void modify(Host& host, QPState state, bool notify = false) {
    QPModify change;
    change.state = state;
    change.set(QPField::kState);
    if (notify) {
      change.enable_sqd_notify = true;
      change.set(QPField::kEnableSQDNotify);
    }
    ASSERT_EQ(host.node.modify_qp(host.qps[0], change), Status::kOk);
  }
  // The slots whose WRITEs are reported have their data; slots beyond may have.
  void check_written(const std::vector<CQE>& cqes) {
    for (const CQE& cqe : cqes) {
      if (cqe.status != WQEStatus::kSuccess || cqe.op != CompletionOp::kRDMAWrite) continue;
      const u64 slot = zone_ + cqe.wr_id / 2 * kSlotBytes;
      EXPECT_TRUE(
          std::ranges::equal(b_.arena.actual(slot, kSlotBytes), a_.arena.actual(slot, kSlotBytes)));
    }
  }
  // Every WQE once, in order: some done, then the rest flushed.
  static void check_flushed(const std::vector<CQE>& cqes, u64 count) {
    ASSERT_EQ(cqes.size(), count);
    for (u64 i = 0; i < count; ++i) EXPECT_EQ(cqes[i].wr_id, i);
    EXPECT_TRUE(std::ranges::is_sorted(cqes, {}, &CQE::status));
    for (const CQE& cqe : cqes)
      EXPECT_TRUE(cqe.status == WQEStatus::kSuccess || cqe.status == WQEStatus::kFlushed);
  }
  u64 drained_events() const {
    return static_cast<u64>(
        std::ranges::count(a_.node.events, AsyncEventType::kSQDrained, &AsyncEvent::type));
  }

  World& world_;
  QPConfig config_;
  Host a_, b_;
  u64 zone_ = 0;
  MRKeys key_a_, key_b_;
};

class LifeCycle : public ::testing::TestWithParam<u64> {
 protected:
  void TearDown() override {
    if (HasFailure()) ADD_FAILURE() << world_.report();
  }
  LifeCycle() {  // every other seed: memory/late_memory_for_test.h
    if (GetParam() % 2 == 0) world_.use_late_memory();
  }
  World world_{GetParam()};
};

TEST_P(LifeCycle, ErrorInTheMiddleThenResetThenANewLife) {
  Life life(world_);
  for (int round = 0; round < 3; ++round) {
    life.post_all();
    world_.run_for(us(static_cast<i64>(world_.prng().in(1, 40))));
    life.modify(life.a_, QPState::kError);
    life.modify(life.b_, QPState::kError);
    if (world_.has_late_memory()) world_.run_for(us(2000));  // flushes wait for copies that run
    const std::vector<CQE> done = life.a_.node.poll(life.a_.cq);
    Life::check_flushed(done, 2 * kSlots);
    life.check_written(done);
    Life::check_flushed(life.b_.node.poll(life.b_.cq), kSlots);
    // Frames of this life are still on the wire while the next one begins, as on a real one.
    if (world_.prng().chance(0.5)) {
      ASSERT_TRUE(world_.run_until_idle(sec(10)));
    }
    life.a_.reset(life.a_.qps[0]);
    life.b_.reset(life.b_.qps[0]);
    ASSERT_TRUE(world_.run_until_idle(sec(10)));
    life.connect_both();
  }
  life.post_all();
  ASSERT_TRUE(world_.run_until_idle(sec(100)));
  const std::vector<CQE> done = life.a_.node.poll(life.a_.cq);
  ASSERT_EQ(done.size(), 2 * kSlots);
  for (const CQE& cqe : done) EXPECT_EQ(cqe.status, WQEStatus::kSuccess);
  life.check_written(done);
  EXPECT_EQ(life.b_.node.poll(life.b_.cq).size(), kSlots);
  EXPECT_EQ(life.a_.tear_down(), std::nullopt);
  EXPECT_EQ(life.b_.tear_down(), std::nullopt);
}

TEST_P(LifeCycle, ResetInTheMiddleForgetsAll) {
  Life life(world_);
  life.post_all();
  world_.run_for(us(static_cast<i64>(world_.prng().in(1, 40))));
  life.a_.reset(life.a_.qps[0]);
  life.b_.reset(life.b_.qps[0]);
  EXPECT_TRUE(life.a_.node.poll(life.a_.cq).empty());  // the QP's CQEs went with it
  EXPECT_TRUE(life.b_.node.poll(life.b_.cq).empty());
  ASSERT_TRUE(world_.run_until_idle(sec(10)));
  EXPECT_TRUE(life.a_.node.poll(life.a_.cq).empty());
  EXPECT_EQ(life.a_.tear_down(), std::nullopt);
  EXPECT_EQ(life.b_.tear_down(), std::nullopt);
}

TEST_P(LifeCycle, DrainedInTheMiddleThenGoneOn) {
  Life life(world_);
  life.post_all();
  std::vector<CQE> done;
  for (u64 round = 1; round <= 3; ++round) {
    world_.run_for(us(static_cast<i64>(world_.prng().in(1, 10))));
    life.modify(life.a_, QPState::kSQD, true);
    ASSERT_TRUE(world_.run_until_idle(sec(100)));  // it drains by itself
    EXPECT_EQ(life.drained_events(), round);
    EXPECT_EQ(life.a_.node.device().next_timer(), Time::never());
    life.modify(life.a_, QPState::kRTS);
  }
  ASSERT_TRUE(world_.run_until_idle(sec(100)));
  done = life.a_.node.poll(life.a_.cq);
  ASSERT_EQ(done.size(), 2 * kSlots);
  for (u64 i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].status, WQEStatus::kSuccess);
  }
  life.check_written(done);
}

TEST_P(LifeCycle, DestroyedInTheMiddle) {
  Life life(world_);
  life.post_all();
  world_.run_for(us(static_cast<i64>(world_.prng().in(1, 40))));
  QueuePair* const gone = life.b_.qps[0];
  life.b_.qps.clear();
  ASSERT_EQ(life.b_.node.device().destroy_qp(gone), Status::kOk);
  ASSERT_TRUE(world_.run_until_idle(sec(100)));
  const std::vector<CQE> done = life.a_.node.poll(life.a_.cq);
  ASSERT_EQ(done.size(), 2 * kSlots);
  life.check_written(done);
  const auto bad =
      std::ranges::find_if(done, [](const CQE& cqe) { return cqe.status != WQEStatus::kSuccess; });
  if (bad != done.end()) {
    EXPECT_EQ(bad->status, WQEStatus::kRetryExceeded);
  }
  EXPECT_EQ(life.b_.tear_down(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifeCycle, ::testing::ValuesIn(seeds(8)), seed_name);

}  // namespace
}  // namespace verbena::sim
