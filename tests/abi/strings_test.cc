// Names of values, and rates: conversions agree with each other.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/abi/verbs_library.h"

namespace verbena::test {
namespace {

const VerbsLibrary& verbs = VerbsLibrary::get();

// The words of rdma-core 44. The first one belongs to the value 0.
constexpr std::array kStatuses = {"success",
                                  "local length error",
                                  "local QP operation error",
                                  "local EE context operation error",
                                  "local protection error",
                                  "Work Request Flushed Error",
                                  "memory management operation error",
                                  "bad response error",
                                  "local access error",
                                  "remote invalid request error",
                                  "remote access error",
                                  "remote operation error",
                                  "transport retry counter exceeded",
                                  "RNR retry counter exceeded",
                                  "local RDD violation error",
                                  "remote invalid RD request",
                                  "aborted error",
                                  "invalid EE context number",
                                  "invalid EE context state",
                                  "fatal error",
                                  "response timeout error",
                                  "general error",
                                  "TM error",
                                  "TM software rendezvous"};
constexpr std::array kEvents = {"CQ error",
                                "local work queue catastrophic error",
                                "invalid request local work queue error",
                                "local access violation work queue error",
                                "communication established",
                                "send queue drained",
                                "path migrated",
                                "path migration request error",
                                "local catastrophic error",
                                "port active",
                                "port error",
                                "LID change",
                                "P_Key change",
                                "SM change",
                                "SRQ catastrophic error",
                                "SRQ limit reached",
                                "last WQE reached",
                                "client reregistration",
                                "GID table change",
                                "WQ fatal"};
constexpr std::array kNodeTypes = {"unknown",           "InfiniBand channel adapter",
                                   "InfiniBand switch", "InfiniBand router",
                                   "iWARP NIC",         "usNIC",
                                   "usNIC UDP",         "unspecified"};
constexpr std::array kPortStates = {"no state change (NOP)", "down", "init", "armed", "active",
                                    "active defer"};

// Compares the names of all values, and of values on both sides of them.
template <typename Value, std::size_t kCount>
void expect_names(const char* (*name_of)(Value), const std::array<const char*, kCount>& names) {
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_STREQ(name_of(static_cast<Value>(i)), names[i]) << i;
  constexpr int kEnd = static_cast<int>(kCount);
  for (const int other : {-1, kEnd, 255, std::numeric_limits<int>::min()})
    EXPECT_STREQ(name_of(static_cast<Value>(other)), "unknown") << other;
}

TEST(StringsTest, NamesAreThoseOfRDMACore) {
  expect_names(verbs.wc_status_str, kStatuses);
  expect_names(verbs.event_type_str, kEvents);
  expect_names(verbs.node_type_str, kNodeTypes);
  expect_names(verbs.port_state_str, kPortStates);
}

TEST(RatesTest, ConvertBothWays) {
  for (int code = IBV_RATE_2_5_GBPS; code <= IBV_RATE_1200_GBPS; ++code) {
    const auto rate = static_cast<ibv_rate>(code);
    EXPECT_EQ(verbs.mbps_to_rate(verbs.rate_to_mbps(rate)), rate) << code;
    const int mult = verbs.rate_to_mult(rate);
    EXPECT_EQ(verbs.mult_to_rate(mult), mult == -1 ? IBV_RATE_MAX : rate) << code;
  }
  EXPECT_EQ(verbs.rate_to_mbps(IBV_RATE_100_GBPS), 103125);
  EXPECT_EQ(verbs.rate_to_mult(IBV_RATE_5_GBPS), 2);
  EXPECT_EQ(verbs.rate_to_mult(IBV_RATE_MAX), -1);
  EXPECT_EQ(verbs.rate_to_mbps(IBV_RATE_MAX), -1);
  EXPECT_EQ(verbs.mult_to_rate(-1), IBV_RATE_MAX);
  EXPECT_EQ(verbs.mbps_to_rate(1), IBV_RATE_MAX);
}

}  // namespace
}  // namespace verbena::test
