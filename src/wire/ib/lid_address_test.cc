#include "wire/ib/lid_address.h"

#include <gtest/gtest.h>

#include <array>

namespace verbena {
namespace {

TEST(LIDAddressTest, EachLIDHasAnAddressOfItsOwn) {
  for (const u16 lid : std::array<u16, 5>{1, 2, 0xbfff, 0xc000, 0xfffe})
    EXPECT_EQ(lid_of_address(address_of_lid(lid)), lid) << lid;
  EXPECT_FALSE(address_of_lid(0xbfff).is_multicast());
  EXPECT_TRUE(address_of_lid(0xc000).is_multicast());
  EXPECT_FALSE(address_of_lid(0x7f00).is_ipv4());
}

TEST(LIDAddressTest, AGIDIsNone) {
  EXPECT_EQ(lid_of_address(*GID::parse("fe80::1")), 0);
  EXPECT_EQ(lid_of_address(*GID::parse("::1")), 0);
  EXPECT_EQ(lid_of_address(GID::from_ipv4(0x7f000001)), 0);
  EXPECT_EQ(lid_of_address(*GID::parse("ff12::c000")), 0);
  EXPECT_EQ(lid_of_address(GID{}), 0);
  EXPECT_TRUE(address_of_lid(0).is_zero());
}

}  // namespace
}  // namespace verbena
