#include "device/port/counters.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(CountersTest, AddsFieldByField) {
  EngineCounters sum, more;
  sum.out_of_sequence = 1;
  more.out_of_sequence = 2;
  more.retransmitted_packets = 40;
  add(sum, more);
  add(sum, more);
  EXPECT_EQ(sum.out_of_sequence, 5u);
  EXPECT_EQ(sum.retransmitted_packets, 80u);
  EXPECT_EQ(sum.duplicate_request, 0u);
}

}  // namespace
}  // namespace verbena
