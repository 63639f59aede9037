// An engine tells peers on its host nothing (LocalProgress) while copies to far memory run.
#include <gtest/gtest.h>

#include "memory/late_memory_for_test.h"
#include "transport/iwarp/iwarp_pair_for_test.h"

namespace verbena::iwarp {
namespace {

using namespace test;

TEST(IWARPLateProgressTest, APeerHearsNothingWhileACopyRuns) {
  CopyLane lane;
  const auto progress = std::make_unique<LocalProgress>();
  EndOptions options;
  options.progress = progress.get();
  options.receive_copies = &lane;
  Pair pair({}, {}, options);
  std::vector<u8> gpu(4096);
  const auto late = std::make_shared<verbena::test::LateMemory>(gpu, PRNG(1));
  late->is_stuck = true;
  pair.b.memory.copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
  const MRKeys keys = *pair.b.memory.register_far(kPD, late, 0, gpu.size(), 0, kAllRights);
  pair.begin();
  const auto write = [&](RKey key, u64 to) {
    SendWR wr;
    wr.op = SendOp::kRDMAWrite;
    wr.r_key = key;
    wr.remote_address = to;
    EXPECT_EQ(pair.a.post(wr, {pair.a.sge(0, 64)}), PostError::kOk);
    pair.run();
  };

  u32 messages = 0;
  for (; lane.has_ended(lane.begun()); ++messages) write(keys.r_key, 0);
  const QPN b = pair.b.qp.qpn;
  EXPECT_FALSE(progress->is_at(b, PSN(messages)));
  write(pair.b.keys.r_key, kIova);
  EXPECT_FALSE(progress->is_at(b, PSN(messages + 1))) << "the write to the GPU precedes it";

  late->is_stuck = false;
  late->finish();
  pair.b.memory.copies().poll(pair.b.memory.far(), lane);
  pair.b.engine->on_timer(kNow);
  EXPECT_TRUE(progress->is_at(b, PSN(messages + 1))) << "it has ended";
  write(pair.b.keys.r_key, kIova);
  EXPECT_TRUE(progress->is_at(b, PSN(messages + 2)));
}

}  // namespace
}  // namespace verbena::iwarp
