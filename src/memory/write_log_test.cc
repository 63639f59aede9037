#include "memory/write_log.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

class WriteLogTest : public ::testing::Test {
 protected:
  [[nodiscard]] Bytes at(std::size_t offset, std::size_t length) const {
    return {memory_.data() + offset, length};
  }
  WriteLog log_;

 private:
  std::array<u8, 4 * WriteLog::kSize> memory_{};
};

TEST_F(WriteLogTest, TellsWhatWasWrittenSince) {
  log_.add(at(100, 8));
  const u64 then = log_.count();
  log_.add(at(200, 8));
  log_.add(at(300, 8));
  EXPECT_TRUE(log_.was_written_since(then, at(207, 1)));
  EXPECT_FALSE(log_.was_written_since(then, at(208, 92)));
  EXPECT_FALSE(log_.was_written_since(then, at(104, 8)));
  EXPECT_TRUE(log_.was_written_since(0, at(104, 8)));
}

TEST_F(WriteLogTest, PiecesOfOneMessageAreOnePlace) {
  for (std::size_t i = 0; i < 2 * WriteLog::kSize; ++i) log_.add(at(i, 1));
  EXPECT_FALSE(log_.was_written_since(0, at(2 * WriteLog::kSize, 1)));
  EXPECT_TRUE(log_.was_written_since(log_.count() - 1, at(2 * WriteLog::kSize - 1, 1)));
}

TEST_F(WriteLogTest, WhatIsForgottenMayHaveBeenAnywhere) {
  for (u64 i = 0; i < WriteLog::kSize; ++i) log_.add(at(2 * i, 1));
  EXPECT_FALSE(log_.was_written_since(0, at(1, 1)));
  log_.add(at(0, 1));
  EXPECT_TRUE(log_.was_written_since(0, at(1, 1)));
  EXPECT_FALSE(log_.was_written_since(1, at(1, 1)));
}

}  // namespace
}  // namespace verbena
