// A responder tells peers on its host nothing (LocalProgress) while copies to far memory run.
#include <gtest/gtest.h>

#include "memory/late_memory_for_test.h"
#include "transport/rc/rc_pair_for_test.h"

namespace verbena {
namespace {

using namespace test;

TEST(RCLateProgressTest, APeerHearsNothingWhileACopyRuns) {
  CopyLane lane;
  const auto progress = std::make_unique<LocalProgress>();
  RCOptions options;
  options.local_progress = progress.get();
  options.receive_copies = &lane;
  RCPair pair(options);
  std::vector<u8> gpu(4096);
  const auto late = std::make_shared<LateMemory>(gpu, PRNG(1));
  late->is_stuck = true;
  pair.b.memory.copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
  const MRKeys keys = *pair.b.memory.register_far(kPD, late, 0, gpu.size(), 0, kAllRights);
  const QPN b = pair.b.qp.qpn;
  const auto write_to_gpu = [&](u32 psn) {
    Packet packet = pair.request(Op::kRDMAWriteOnly, psn, 64);
    packet.headers.reth.virtual_address = 0;
    packet.headers.reth.r_key = keys.r_key;
    pair.deliver(pair.b, packet);
  };

  u32 psn = pair.o.psn;
  for (; lane.has_ended(lane.begun()); ++psn) write_to_gpu(psn);  // some copies end at once
  EXPECT_FALSE(progress->is_at(b, PSN(psn)));
  pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, psn, 64));  // to host memory
  EXPECT_FALSE(progress->is_at(b, PSN(psn + 1))) << "the write to the GPU precedes it";

  late->is_stuck = false;
  late->finish();
  pair.b.memory.copies().poll(pair.b.memory.far(), lane);
  pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, psn + 1, 64));
  EXPECT_TRUE(progress->is_at(b, PSN(psn + 2)));
}

}  // namespace
}  // namespace verbena
