#include "cli/sim_run.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

std::vector<SimRun> three() {
  std::vector<SimRun> runs(3);
  for (SimRun& run : runs) run.title = "a run";
  return runs;
}

TEST(SimRun, GoesFromOneProcessToAnother) {
  std::vector<SimRun> sent = three(), received = three();
  sent[0].has_run = sent[2].has_run = true;
  sent[0].column =
      SimColumn{.title = "a run", .lines = {{"step time", "1 ms"}, {"\"x\"", "\xc3\xb6"}}};
  sent[2].column = failure(kExitCannot, "a.yaml:1: wrong");
  sent[2].was_interrupted = true;
  unpack(packed(sent), received);
  ASSERT_TRUE(received[0].has_run && received[0].column);
  EXPECT_EQ(table_csv({*received[0].column}), table_csv({*sent[0].column}));
  EXPECT_FALSE(received[1].has_run);
  ASSERT_TRUE(received[2].has_run && !received[2].column);
  EXPECT_EQ(received[2].column.error().message, "a.yaml:1: wrong");
  EXPECT_EQ(received[2].column.error().exit_status, kExitCannot);
  EXPECT_TRUE(received[2].was_interrupted && !received[0].was_interrupted);
}

}  // namespace
}  // namespace verbena::cli
