#include "host/settings/retransmission_settings.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

namespace verbena::host {
namespace {

TEST(RetransmissionSettingsTest, GoBackNUnlessSelectiveRepeatIsAskedFor) {
  ::unsetenv(kRetransmissionVariable);
  EXPECT_EQ(retransmission_from_environment().value(), Retransmission::kGoBackN);
  ::setenv(kRetransmissionVariable, "selective_repeat", 1);
  EXPECT_EQ(retransmission_from_environment().value(), Retransmission::kSelectiveRepeat);
  ::setenv(kRetransmissionVariable, "go_back_n", 1);
  EXPECT_EQ(retransmission_from_environment().value(), Retransmission::kGoBackN);
  ::setenv(kRetransmissionVariable, "sack", 1);
  const Expected<Retransmission> wrong = retransmission_from_environment();
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().error, EINVAL);
  ::unsetenv(kRetransmissionVariable);
}

}  // namespace
}  // namespace verbena::host
