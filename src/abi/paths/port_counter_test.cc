#include "abi/paths/port_counter.h"

#include <gtest/gtest.h>

namespace verbena::abi::paths {
namespace {

TEST(PortCounterTest, CountersOfEitherFolder) {
  for (const char* path : {"/t/sys/class/infiniband/verbena0/ports/1/counters/port_xmit_data",
                           "/t/verbena12/ports/1/hw_counters/out_of_buffer",
                           "/t/verbena0/ports/1/hw_counters/duplicate_request"})
    EXPECT_TRUE(PortCounter::of(path).has_value()) << path;
}

TEST(PortCounterTest, OtherFilesAreNone) {
  for (const char* path :
       {"", "/", "port_xmit_data", "counters/port_xmit_data", "/ports/1/counters/port_xmit_data",
        "/t/verbena0/ports/1/hw_counters/port_xmit_data", "/t/verbena0/ports/1/counters/",
        "/t/verbena0/ports/1/counters/nonesuch", "/t/verbena0/ports/1/gids/0",
        "/t/verbena0/x/1/counters/port_xmit_data",
        "/t/a_name_that_is_too_long/ports/1/counters/port_xmit_data"})
    EXPECT_FALSE(PortCounter::of(path).has_value()) << path;
}

}  // namespace
}  // namespace verbena::abi::paths
