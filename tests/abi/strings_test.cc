// Names and rates: every value has one, and conversions agree with each other.
#include <gtest/gtest.h>

#include "tests/abi/verbs_library.h"

namespace verbena::test {
namespace {

const VerbsLibrary& verbs = VerbsLibrary::get();

TEST(StringsTest, EveryValueHasAName) {
  for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status)
    EXPECT_STRNE(verbs.wc_status_str(static_cast<ibv_wc_status>(status)), "unknown") << status;
  for (int event = IBV_EVENT_CQ_ERR; event <= IBV_EVENT_WQ_FATAL; ++event)
    EXPECT_STRNE(verbs.event_type_str(static_cast<ibv_event_type>(event)), "unknown") << event;
  for (int node = IBV_NODE_CA; node <= IBV_NODE_UNSPECIFIED; ++node)
    EXPECT_STRNE(verbs.node_type_str(static_cast<ibv_node_type>(node)), "unknown") << node;
  EXPECT_STREQ(verbs.port_state_str(IBV_PORT_ACTIVE), "PORT_ACTIVE");
}

TEST(StringsTest, OtherValuesAreUnknown) {
  EXPECT_STREQ(verbs.wc_status_str(static_cast<ibv_wc_status>(24)), "unknown");
  EXPECT_STREQ(verbs.event_type_str(static_cast<ibv_event_type>(20)), "unknown");
  EXPECT_STREQ(verbs.node_type_str(IBV_NODE_UNKNOWN), "unknown");
  EXPECT_STREQ(verbs.port_state_str(static_cast<ibv_port_state>(6)), "invalid state");
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
