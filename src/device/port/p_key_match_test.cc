#include "device/port/p_key_match.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(PKeyMatchTest, OneOfTheTwoMustBeAFullMember) {
  EXPECT_TRUE(p_keys_match(PKey{0xffff}, PKey{0xffff}));
  EXPECT_TRUE(p_keys_match(PKey{0xffff}, PKey{0x7fff}));
  EXPECT_TRUE(p_keys_match(PKey{0x7fff}, PKey{0xffff}));
  EXPECT_FALSE(p_keys_match(PKey{0x7fff}, PKey{0x7fff}));
}

TEST(PKeyMatchTest, TheBasesMustBeTheSameAndNotZero) {
  EXPECT_TRUE(p_keys_match(PKey{0x8001}, PKey{0x0001}));
  EXPECT_FALSE(p_keys_match(PKey{0x8001}, PKey{0x8002}));
  EXPECT_FALSE(p_keys_match(PKey{0x8000}, PKey{0x8000}));
  EXPECT_FALSE(p_keys_match(PKey{0}, PKey{0}));
}

}  // namespace
}  // namespace verbena
