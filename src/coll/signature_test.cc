#include "coll/signature.h"

#include <gtest/gtest.h>

namespace verbena::coll {
namespace {

Call float_call(Kind kind, u64 count) {
  return {.kind = kind, .type = DataType::kFloat32, .count = count};
}

TEST(Signature, TellsDifferentCallsApart) {
  const Signature eight = signature_of(float_call(Kind::kAllReduce, 8), 1);
  EXPECT_EQ(eight, signature_of(float_call(Kind::kAllReduce, 8), 1));
  EXPECT_NE(eight, signature_of(float_call(Kind::kAllReduce, 9), 1));
  EXPECT_NE(eight, signature_of(float_call(Kind::kAllReduce, 8), 2));
  EXPECT_NE(eight, signature_of(float_call(Kind::kAllGather, 8), 1));
  EXPECT_EQ(text_of(eight), "AllReduce of 8 float (sum) by direct");
  EXPECT_EQ(text_of(signature_of(float_call(Kind::kBroadcast, 8), *algorithm_number("ring"))),
            "Broadcast of 8 float with root 0 by ring");
  EXPECT_EQ(text_of(signature_of(float_call(Kind::kAllReduce, 8), 200)),
            "AllReduce of 8 float (sum) by an unknown algorithm");
  EXPECT_EQ(text_of({~u64{0}, 0}), "an unknown operation");
}

}  // namespace
}  // namespace verbena::coll
