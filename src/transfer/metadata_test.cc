#include "transfer/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::transfer {
namespace {

Metadata example() {
  return {
      .name = "prefill-0",
      .incarnation = 0x1122334455667788,
      .host = "10.0.0.1",
      .port = 4000,
      .rails = 2,
      .regions = {
          {.id = 1, .address = 4096, .length = 8192, .rights = kRemoteRead, .rkeys = {7, 8, 0, 0}},
          {.id = 2,
           .address = 65536,
           .length = 100,
           .rights = kRemoteRead | kRemoteWrite,
           .rkeys = {9, 10, 0, 0}}}};
}

TEST(MetadataTest, DecodesWhatItEncodes) {
  const auto decoded = Metadata::decode(example().encode());
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(*decoded, example());
}

TEST(MetadataTest, RefusesTruncationsAndMore) {
  const std::string bytes = example().encode();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(Metadata::decode(bytes.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(Metadata::decode(bytes + "x").has_value());
}

TEST(MetadataTest, RefusesImpossibleRegions) {
  for (const RemoteRegion& wrong :
       {RemoteRegion{.id = 0, .address = 1, .length = 1, .rights = 1},
        RemoteRegion{.id = 1, .address = 1, .length = 0, .rights = 1},
        RemoteRegion{.id = 1, .address = ~u64{0}, .length = 2, .rights = 1},
        RemoteRegion{.id = 1, .address = 1, .length = 1, .rights = 4}}) {
    Metadata metadata = example();
    metadata.regions = {wrong};
    EXPECT_FALSE(Metadata::decode(metadata.encode()).has_value());
  }
}

TEST(FindRegion, ChecksBoundsRightsAndId) {
  const auto regions = example().regions;
  EXPECT_EQ(*find_region(regions, 0, 4096, 8192, kRemoteRead, ""), 0u);
  EXPECT_EQ(*find_region(regions, 2, 65636, 0, kRemoteWrite, ""), 1u);
  EXPECT_FALSE(find_region(regions, 0, 4096, 8193, kRemoteRead, "").has_value());
  EXPECT_FALSE(find_region(regions, 0, 4097, ~u64{0}, kRemoteRead, "").has_value());
  EXPECT_FALSE(find_region(regions, 1, 65536, 1, kRemoteRead, "").has_value());
  EXPECT_THAT(find_region(regions, 0, 4096, 1, kRemoteWrite, "of b").error(),
              testing::HasSubstr("does not allow remote writes"));
}

TEST(AgentName, IsPrintable) {
  EXPECT_TRUE(is_agent_name("decode/1"));
  EXPECT_FALSE(is_agent_name(""));
  EXPECT_FALSE(is_agent_name("a b"));
  EXPECT_FALSE(is_agent_name(std::string(256, 'x')));
}

}  // namespace
}  // namespace verbena::transfer
