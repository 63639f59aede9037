#include "fabric/ecmp.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

// Values by an independent MurmurHash3_x86_32 in Python.
TEST(FlowHash, IsMurmur3) {
  EXPECT_EQ(flow_hash({}, 0), 0xd941144bu);
  EXPECT_EQ(flow_hash({0x61616161, 0x61616161, 0x6161, 0x6161}, 0), 0x4c29c6eau);
}

// From host 77 to 165 by switch 324 of HPCC's ns-3 model, whose path is known: the third of four.
TEST(FlowHash, ChoosesAsNS3Does) {
  EXPECT_EQ(flow_hash({.source_address = 0x0b004d01,
                       .destination_address = 0x0b00a501,
                       .source_port = 10000,
                       .destination_port = 100},
                      324) %
                4,
            2u);
}

}  // namespace
}  // namespace verbena::fabric
