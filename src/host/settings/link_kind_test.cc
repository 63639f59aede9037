#include "host/settings/link_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

namespace verbena::host {
namespace {

TEST(LinkKindTest, NamesAndBack) {
  for (const LinkKind kind : {LinkKind::kUDP, LinkKind::kPacket, LinkKind::kXDP})
    EXPECT_EQ(link_kind_named(name_of(kind)), kind);
  EXPECT_EQ(name_of(LinkKind::kXDP), "xdp");
  EXPECT_EQ(link_kind_named("XDP"), std::nullopt);
  EXPECT_EQ(link_kind_named(""), std::nullopt);
}

TEST(LinkKindTest, TheEnvironment) {
  ::unsetenv(kLinkVariable);
  EXPECT_EQ(link_kind_from_environment().value(), LinkKind::kUDP);
  ::setenv(kLinkVariable, "packet", 1);
  EXPECT_EQ(link_kind_from_environment().value(), LinkKind::kPacket);
  ::setenv(kLinkVariable, "ethernet", 1);
  const auto wrong = link_kind_from_environment();
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().error, EINVAL);
  EXPECT_EQ(wrong.error().message, "VERBENA_LINK=ethernet is none of udp packet xdp iwarp");
  ::unsetenv(kLinkVariable);
}

}  // namespace
}  // namespace verbena::host
