#include "cli/option_values.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

TEST(OptionValuesTest, Intervals) {
  EXPECT_EQ(parse_interval("1"), sec(1));
  EXPECT_EQ(parse_interval("0.25"), ms(250));
  EXPECT_EQ(parse_interval("86400"), sec(86'400));
  for (const char* text : {"", "0", "-1", "1s", " 1", "nan", "inf", "0.001", "86401", "1e99", "x"})
    EXPECT_FALSE(parse_interval(text).has_value()) << text;
}

TEST(OptionValuesTest, ListenAddresses) {
  const auto is = [](const char* text, const char* address, u16 port) {
    const std::optional<ListenAddress> parsed = parse_listen_address(text);
    return parsed && parsed->address == *GID::parse(address) && parsed->port == port;
  };
  EXPECT_TRUE(is("9100", "127.0.0.1", 9100));
  EXPECT_TRUE(is("0", "127.0.0.1", 0));
  EXPECT_TRUE(is("0.0.0.0:80", "0.0.0.0", 80));
  EXPECT_TRUE(is("[::1]:65535", "::1", 65535));
  for (const char* text : {"", ":", ":80", "65536", "-1", "80x", "1.2.3.4", "1.2.3.4:", "host:80",
                           "::1:80", "[1.2.3.4]:80", "[::1]", "[::1]80", "[]:80"})
    EXPECT_FALSE(parse_listen_address(text).has_value()) << text;
}

}  // namespace
}  // namespace verbena::cli
