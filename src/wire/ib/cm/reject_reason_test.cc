#include "wire/ib/cm/reject_reason.h"

#include <gtest/gtest.h>

namespace verbena::cm {
namespace {

TEST(RejectReasonTest, OneToThirtyThreeAndThirtyFiveHaveNames) {  // IBTA Vol 1, table 109
  for (u16 reason = 0; reason < 64; ++reason)
    EXPECT_EQ(to_string(RejectReason{reason}) != "reserved",
              (reason >= 1 && reason <= 33) || reason == 35)
        << reason;
}

TEST(RejectReasonTest, TheOnesThatProgramsMeet) {  // as rdma_cm's "error" numbers
  EXPECT_EQ(to_string(RejectReason{8}), "invalid Service ID");
  EXPECT_EQ(to_string(RejectReason{10}), "stale connection");
  EXPECT_EQ(to_string(RejectReason{28}), "consumer reject");
}

}  // namespace
}  // namespace verbena::cm
