#include "host/local/frame_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

namespace verbena::host {
namespace {

class FrameRingTest : public testing::Test {
 protected:
  bool put(u32 size, u8 seed) {
    u8* const room = writer_.add({}, size);
    if (room == nullptr) return false;
    writer_.last().udp_source_port = seed;
    std::iota(room, room + size, seed);
    return writer_.publish();
  }
  bool take() { return reader_.poll(record_); }
  void expect(u32 size, u8 seed) {
    ASSERT_TRUE(take());
    ASSERT_EQ(record_.body.size(), size);
    EXPECT_EQ(record_.header.udp_source_port, seed);
    std::vector<u8> wanted(size);
    std::iota(wanted.begin(), wanted.end(), seed);
    EXPECT_TRUE(std::ranges::equal(record_.body, wanted));
  }
  // The ring as a peer can write it: two counts and a flag, each in a cache line, and addresses;
  // then the records, whose first word is their length.
  static constexpr u64 kRecordsAt = 192 + FrameRing::kAddresses * sizeof(FrameRing::Addresses);
  void set_length(u64 at, u32 length) {
    std::memcpy(reinterpret_cast<u8*>(ring_.get()) + kRecordsAt + at, &length, sizeof length);
  }
  void expect_nothing() {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(take());
  }

  std::unique_ptr<FrameRing> ring_ = std::make_unique<FrameRing>();
  FrameRingWriter writer_{*ring_};
  FrameRingReader reader_{*ring_};
  FrameRingReader::Record record_;
};

TEST_F(FrameRingTest, FramesComeOutAsTheyWentIn) {
  expect_nothing();
  ASSERT_TRUE(put(100, 1));
  ASSERT_TRUE(put(FrameRing::kMaxTrainBody, 2));
  ASSERT_TRUE(put(1, 3));
  expect(100, 1);
  expect(FrameRing::kMaxTrainBody, 2);
  expect(1, 3);
  expect_nothing();
}

// The writer gets no room back for them until the reader asks for more.
TEST_F(FrameRingTest, BodiesThatAreKeptStayAsTheyAre) {
  u32 count = 0;
  while (put(4000, static_cast<u8>(count))) ++count;
  std::vector<FrameRingReader::Record> kept(count);
  for (FrameRingReader::Record& record : kept) ASSERT_TRUE(reader_.poll_and_keep(record));
  EXPECT_FALSE(reader_.poll_and_keep(record_));
  EXPECT_FALSE(put(4000, 1));
  for (u32 i = 0; i < count; ++i) {
    EXPECT_EQ(kept[i].body.size(), 4000u);
    EXPECT_EQ(kept[i].body[0], static_cast<u8>(i));
  }
  EXPECT_FALSE(reader_.has_more());
  EXPECT_TRUE(put(4000, 1));
}

TEST_F(FrameRingTest, AWriterHearsWhetherItsReaderWatches) {
  EXPECT_FALSE(writer_.is_watched());
  reader_.watch();
  EXPECT_TRUE(writer_.is_watched());
  EXPECT_FALSE(reader_.has_more());
  ASSERT_TRUE(put(10, 1));
  EXPECT_TRUE(reader_.has_more());
  expect(10, 1);
  EXPECT_FALSE(reader_.has_more());
  reader_.unwatch();
  EXPECT_FALSE(writer_.is_watched());
}

TEST_F(FrameRingTest, WhatIsNotPublishedIsNotSeen) {
  (void)writer_.add({}, 10);
  (void)writer_.add({}, 20);
  expect_nothing();
  EXPECT_TRUE(writer_.publish());
  EXPECT_FALSE(writer_.publish());
  EXPECT_TRUE(take());
  EXPECT_TRUE(take());
  expect_nothing();
}

TEST_F(FrameRingTest, ARecordTellsWhetherAnotherFollows) {
  (void)writer_.add({}, 10);
  (void)writer_.add({}, 200);
  (void)writer_.add({}, 10);
  ASSERT_TRUE(writer_.publish());
  for (const bool follows : {true, true, false}) {
    ASSERT_TRUE(take());
    EXPECT_EQ(reader_.follows(), follows);
  }
  ASSERT_TRUE(put(1, 1));
  EXPECT_TRUE(reader_.has_more()) << "of which the last one knew nothing";
}

TEST_F(FrameRingTest, EachHasItsAddresses) {
  for (u32 i = 0; i < 3 * FrameRing::kAddresses; ++i) {
    const GID source = GID::from_ipv4(i), destination = GID::from_ipv4(1000 + i);
    for (int again = 0; again < 2; ++again) {
      ASSERT_NE(writer_.add({.source = source, .destination = destination}, 10), nullptr) << i;
      ASSERT_TRUE(writer_.publish());
      ASSERT_TRUE(take());
      EXPECT_EQ(record_.addresses.source, source);
      EXPECT_EQ(record_.addresses.destination, destination);
      EXPECT_FALSE(reader_.has_more());
    }
  }
}

TEST_F(FrameRingTest, MoreAddressesThanFitWaitUntilAllIsRead) {
  for (u32 i = 0; i < FrameRing::kAddresses; ++i)
    ASSERT_NE(writer_.add({.source = GID::from_ipv4(i)}, 10), nullptr);
  ASSERT_TRUE(writer_.publish());
  EXPECT_EQ(writer_.add({.source = GID::from_ipv4(99)}, 10), nullptr);
  for (u32 i = 0; i < FrameRing::kAddresses; ++i) {
    ASSERT_TRUE(take());
    EXPECT_EQ(record_.addresses.source, GID::from_ipv4(i));
  }
  EXPECT_FALSE(reader_.has_more());
  EXPECT_NE(writer_.add({.source = GID::from_ipv4(99)}, 10), nullptr);
}

TEST_F(FrameRingTest, WhatWasTakenBackIsNotThere) {
  ASSERT_TRUE(put(10, 1));
  (void)writer_.add({}, 20);
  writer_.take_back();
  EXPECT_FALSE(writer_.publish());
  ASSERT_NE(writer_.add({}, 30), nullptr);
  (void)writer_.add({}, 40);
  writer_.take_back();
  EXPECT_TRUE(writer_.publish());
  expect(10, 1);
  EXPECT_TRUE(take());
  EXPECT_EQ(record_.body.size(), 30u);
  expect_nothing();
}

TEST_F(FrameRingTest, AFullOneTakesNothing) {
  u64 count = 0;
  while (put(4096, static_cast<u8>(count))) ++count;
  EXPECT_GT(count * 4096, FrameRing::kBytes * 9 / 10);
  EXPECT_FALSE(put(4096, 0));
  expect(4096, 0);
  expect(4096, 1);
  EXPECT_FALSE(put(4096, 0)) << "the second is still looked at";
  expect(4096, 2);
  EXPECT_TRUE(put(4096, static_cast<u8>(count)));
  for (u64 i = 3; i <= count; ++i) expect(4096, static_cast<u8>(i));
  expect_nothing();
}

TEST_F(FrameRingTest, GoesAroundTheEnd) {
  u8 put_next = 0, expect_next = 0;
  for (int i = 0; i < 700; ++i) ASSERT_TRUE(put(1000, put_next++));
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(put(1000 + static_cast<u32>(i % 50), put_next++));
    ASSERT_TRUE(take());
    ASSERT_EQ(record_.header.udp_source_port, expect_next++);
  }
}

TEST_F(FrameRingTest, OthersGoOnWhereItWasLeft) {
  ASSERT_TRUE(put(10, 1));
  expect(10, 1);
  (void)writer_.add({}, 50);  // by one that ended before it was published
  EXPECT_FALSE(take());
  FrameRingWriter writer(*ring_);
  FrameRingReader reader(*ring_);
  ASSERT_NE(writer.add({}, 20), nullptr);
  ASSERT_TRUE(writer.publish());
  ASSERT_TRUE(reader.poll(record_));
  EXPECT_EQ(record_.body.size(), 20u);
  EXPECT_FALSE(reader.poll(record_));
}

// The writer ended between the record and its count.
TEST_F(FrameRingTest, ANewWriterLeavesWhatIsThere) {
  ASSERT_TRUE(put(10, 1));
  std::memset(static_cast<void*>(ring_.get()), 0, sizeof(u64));
  FrameRingWriter writer(*ring_);
  ASSERT_NE(writer.add({}, 20), nullptr);
  ASSERT_TRUE(writer.publish());
  expect(10, 1);
  ASSERT_TRUE(take());
  EXPECT_EQ(record_.body.size(), 20u);
}

TEST_F(FrameRingTest, ANewWriterLeavesTheAddressesOfWhatIsThere) {
  const GID old{.bytes = {1}}, fresh{.bytes = {2}};
  (void)writer_.add({.source = old}, 10);
  ASSERT_TRUE(writer_.publish());
  FrameRingWriter next(*ring_);
  EXPECT_EQ(next.add({.source = fresh}, 10), nullptr);
  ASSERT_TRUE(take());
  EXPECT_EQ(record_.addresses.source, old);
  expect_nothing();
  ASSERT_NE(next.add({.source = fresh}, 10), nullptr);
  ASSERT_TRUE(next.publish());
  ASSERT_TRUE(take());
  EXPECT_EQ(record_.addresses.source, fresh);
}

TEST_F(FrameRingTest, LengthsThatMakeNoSenseBreakIt) {
  for (const u32 length :
       {1u, u32{sizeof(FrameRing::Header)} - 1,
        u32{sizeof(FrameRing::Header)} + FrameRing::kMaxTrainBody + 1, FrameRing::kSkip - 1}) {
    FrameRingReader reader(*ring_);
    set_length(0, length);
    EXPECT_FALSE(reader.poll(record_)) << length;
    set_length(0, sizeof(FrameRing::Header));
    EXPECT_FALSE(reader.poll(record_)) << length;
  }
}

TEST_F(FrameRingTest, ARecordThatGoesAroundTheEndBreaksIt) {
  constexpr u64 kLastLine = FrameRing::kBytes - 64;
  set_length(0, FrameRing::kSkip);
  expect_nothing();
  set_length(kLastLine, sizeof(FrameRing::Header) + 64);
  std::memcpy(reinterpret_cast<u8*>(ring_.get()) + 64, &kLastLine, sizeof kLastLine);  // read
  FrameRingReader reader(*ring_);
  EXPECT_FALSE(reader.poll(record_));
  EXPECT_FALSE(reader.has_more());
}

TEST_F(FrameRingTest, SkippingForEverBreaksIt) {
  set_length(0, FrameRing::kSkip);
  expect_nothing();
  EXPECT_FALSE(reader_.has_more());
}

TEST_F(FrameRingTest, BetweenThreads) {
  constexpr u32 kFrames = 100'000;
  std::thread writer([this] {
    for (u32 i = 0; i < kFrames;)
      put(8 + i % 3000, static_cast<u8>(i)) ? void(++i) : std::this_thread::yield();
  });
  for (u32 i = 0; i < kFrames;) {
    if (!take()) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(record_.body.size(), 8 + i % 3000);
    ASSERT_EQ(record_.body.back(), static_cast<u8>(i + 7 + i % 3000));
    ++i;
  }
  writer.join();
}

}  // namespace
}  // namespace verbena::host
