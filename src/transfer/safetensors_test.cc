#include "transfer/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace verbena::transfer {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& json, u64 data_bytes) {
  const auto header = SafetensorsHeader::parse(json, 8 + json.size() + data_bytes);
  return header ? "" : header.error();
}

constexpr const char* kTwoTensors = R"({"__metadata__":{"format":"pt"},)"
                                    R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
                                    R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";

TEST(SafetensorsTest, ReadsAHeader) {
  const auto header = SafetensorsHeader::parse(kTwoTensors, 8 + std::strlen(kTwoTensors) + 28);
  ASSERT_TRUE(header.has_value()) << header.error();
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->find("b")->offset, 8 + std::strlen(kTwoTensors) + 4);
  EXPECT_EQ(header->find("b")->bytes, 24u);
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->find("c"), nullptr);
}

TEST(SafetensorsTest, RefusesLies) {
  EXPECT_EQ(error_of(kTwoTensors, 28), "");
  EXPECT_THAT(error_of(kTwoTensors, 27), HasSubstr("cut short"));
  EXPECT_THAT(error_of(kTwoTensors, 29), HasSubstr("1 bytes of the data belong to no tensor"));
  const auto one = [](const std::string& text) { return error_of("{\"t\":" + text + "}", 4); };
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})"), "");
  EXPECT_THAT(one(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})"), HasSubstr("dtype F33"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), HasSubstr("shape"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), HasSubstr("dimension"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), HasSubstr("impossible"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})"), HasSubstr("just"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})"),
              HasSubstr("shape"));
  EXPECT_THAT(one("3"), HasSubstr("just"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                       4),
              HasSubstr("overlaps"));
  EXPECT_THAT(error_of(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", 4),
              HasSubstr("hole"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("does not begin"));
}

TEST(SafetensorsTest, ChecksTheLengthOfTheHeader) {
  const std::string prefix("\x10\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(*SafetensorsHeader::json_bytes(prefix, 24), 16u);
  EXPECT_FALSE(SafetensorsHeader::json_bytes(prefix, 23).has_value());
  EXPECT_FALSE(SafetensorsHeader::json_bytes(prefix.substr(1), 24).has_value());
  EXPECT_FALSE(SafetensorsHeader::json_bytes(std::string(8, '\xff'), ~u64{0}).has_value());
}

TEST(SafetensorsTest, ReadsTheHeaderThatItMakes) {
  std::vector<Tensor> tensors = {
      {.name = "x", .type = "F16", .element_bits = 16, .shape = {3, 2}, .bytes = 12},
      {.name = "y\"", .type = "U8", .element_bits = 8, .shape = {5}, .bytes = 5}};
  const std::string made = make_safetensors_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(made.size() % 8, 0u);
  const auto header = SafetensorsHeader::parse(made.substr(8), made.size() + 17);
  ASSERT_TRUE(header.has_value()) << header.error();
  EXPECT_EQ(header->tensors, tensors);
}

Tensor matrix(u64 rows, u64 columns) {
  return {.name = "w",
          .type = "F16",
          .element_bits = 16,
          .shape = {rows, columns},
          .offset = 100,
          .bytes = rows * columns * 2};
}

TEST(SliceTest, RowsAreOneRun) {
  const auto layout = slice_of(matrix(8, 4), {Slice::Axis::kRows, 1, 2});
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->tensor.shape, (std::vector<u64>{4, 4}));
  EXPECT_EQ(layout->offset, 132u);
  EXPECT_EQ(layout->run, 32u);
  EXPECT_EQ(layout->count, 1u);
}

TEST(SliceTest, ColumnsAreARunOfEachRow) {
  const auto layout = slice_of(matrix(8, 4), {Slice::Axis::kColumns, 3, 4});
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->offset, 106u);
  EXPECT_EQ(layout->run, 2u);
  EXPECT_EQ(layout->stride, 8u);
  EXPECT_EQ(layout->count, 8u);
  EXPECT_EQ(layout->tensor.bytes, 16u);
}

TEST(SliceTest, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(slice_of(matrix(9, 4), {Slice::Axis::kRows, 0, 2}).error(),
              HasSubstr("9 rows do not divide by 2"));
  EXPECT_THAT(slice_of(matrix(9, 4), {Slice::Axis::kColumns, 0, 3}).error(),
              HasSubstr("4 columns do not divide by 3"));
  Tensor vector = matrix(4, 1);
  vector.shape = {4};
  EXPECT_FALSE(slice_of(vector, {Slice::Axis::kColumns, 0, 2}).has_value());
  EXPECT_EQ(slice_of(matrix(9, 4), {})->run, 72u);
}

}  // namespace
}  // namespace verbena::transfer
