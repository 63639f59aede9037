#include "transport/stream_gather.h"

#include <gtest/gtest.h>

#include <string_view>

namespace verbena {
namespace {

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

std::string text_of(const StreamGather& gather, u32 from, u32 to) {
  std::string text;
  gather.visit_range(from, to, [&text](Bytes part) { text.append(part.begin(), part.end()); });
  return text;
}

TEST(StreamGatherTest, CopiesThatFollowEachOtherAreOnePiece) {
  StreamGather gather;
  gather.add_copy(bytes_of("header"));
  gather.add_copy(bytes_of("payload"));
  EXPECT_EQ(gather.pieces().size(), 1u);
  EXPECT_EQ(gather.bytes(), 13u);
  EXPECT_EQ(text_of(gather, 4, 9), "erpay");
}

TEST(StreamGatherTest, BytesThatStayWhereTheyAreSeparateCopies) {
  const std::string_view payload = "payload";
  StreamGather gather;
  gather.add_copy(bytes_of("header"));
  gather.add(bytes_of(payload));
  gather.add_copy(bytes_of("trailer"));
  ASSERT_EQ(gather.pieces().size(), 3u);
  EXPECT_EQ(gather.pieces()[1].data(), bytes_of(payload).data());
  EXPECT_EQ(text_of(gather, 0, gather.bytes()), "headerpayloadtrailer");
}

TEST(StreamGatherTest, TheLastCopiesAreFoundInAnyLength) {
  StreamGather gather;
  gather.add_copy(bytes_of("ab"));
  gather.add_copy(bytes_of("cd"));
  const Bytes last = gather.last_copied(3);
  EXPECT_EQ(std::string(last.begin(), last.end()), "bcd");
  EXPECT_TRUE(gather.last_copied(0).empty());
}

TEST(StreamGatherTest, NothingIsLeftAfterClear) {
  StreamGather gather;
  gather.add_copy(bytes_of("old"));
  gather.clear();
  EXPECT_TRUE(gather.empty());
  gather.add_copy(bytes_of("new"));
  EXPECT_EQ(gather.pieces().size(), 1u);
  EXPECT_EQ(text_of(gather, 0, 3), "new");
}

TEST(StreamGatherTest, ManyShortUnitsFitWhereTheyAreCopied) {
  StreamGather gather;
  u32 units = 0;
  for (; gather.has_room_for(84); ++units) {
    gather.add_copy(bytes_of("header and payload"));
    gather.add_copy(bytes_of("trailer"));
  }
  EXPECT_GT(units, StreamGather::kMaxPieces);
  EXPECT_LE(gather.bytes(), StreamGather::kMaxBytes);
}

}  // namespace
}  // namespace verbena
