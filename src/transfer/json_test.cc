#include "transfer/json.h"

#include <gtest/gtest.h>

namespace verbena::transfer {
namespace {

TEST(JSONTest, ReadsValues) {
  const auto json =
      JSON::parse(R"( {"a": [1, -2.5e3, true, null], "b\n\u00e9\ud83d\ude00": "x"} )");
  ASSERT_TRUE(json.has_value()) << json.error();
  EXPECT_EQ(json->find("a")->items[0].whole(), 1u);
  EXPECT_EQ(json->find("a")->items[1].number(), -2500.0);
  EXPECT_FALSE(json->find("a")->items[1].whole());
  EXPECT_TRUE(json->find("a")->items[2].boolean);
  EXPECT_EQ(json->members[1].first, "b\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(json->find("c"), nullptr);
}

TEST(JSONTest, RefusesWhatIsNotStrict) {
  for (const char* const text :
       {"", "{", "[1,]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "01", "1.", "+1", "nul", "\"\t\"",
        "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"", "{} {}", "{1:2}", "\"", "[1 2]", "1e", "-"})
    EXPECT_FALSE(JSON::parse(text).has_value()) << text;
  EXPECT_FALSE(JSON::parse(std::string(1000, '[')).has_value());
  EXPECT_EQ(JSON::parse("18446744073709551616")->whole(), std::nullopt);
}

TEST(JSONTest, QuotesWhatItReads) {
  const std::string text = "a\"\\\n\x01 é";
  EXPECT_EQ(JSON::parse(json_string(text))->text, text);
}

}  // namespace
}  // namespace verbena::transfer
