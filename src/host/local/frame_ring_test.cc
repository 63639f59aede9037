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
    const MutableBytes room = writer_.add({.size = size, .udp_source_port = seed});
    if (room.empty()) return false;
    EXPECT_EQ(room.size(), size);
    std::iota(room.begin(), room.end(), seed);
    return writer_.publish();
  }
  void expect(u32 size, u8 seed) {
    IngressFrame frame;
    ASSERT_TRUE(reader_.poll(frame));
    ASSERT_EQ(frame.transport.size(), size);
    EXPECT_EQ(frame.udp_source_port, seed);
    std::vector<u8> wanted(size);
    std::iota(wanted.begin(), wanted.end(), seed);
    EXPECT_TRUE(std::ranges::equal(frame.transport, wanted));
  }
  // What a peer can write: both counts and a flag, each in a cache line, then the records.
  void set_written(u64 value) {
    std::memcpy(reinterpret_cast<u8*>(ring_.get()), &value, sizeof value);
  }
  void set_record(u64 at, u32 size) {
    std::memcpy(reinterpret_cast<u8*>(ring_.get()) + 192 + at, &size, sizeof size);
  }
  void expect_nothing() {
    IngressFrame frame;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(reader_.poll(frame));
  }

  std::unique_ptr<FrameRing> ring_ = std::make_unique<FrameRing>();
  FrameRingWriter writer_{*ring_};
  FrameRingReader reader_{*ring_};
};

TEST_F(FrameRingTest, FramesComeOutAsTheyWentIn) {
  expect_nothing();
  ASSERT_TRUE(put(100, 1));
  ASSERT_TRUE(put(FrameRing::kMaxFrame, 2));
  ASSERT_TRUE(put(1, 3));
  expect(100, 1);
  expect(FrameRing::kMaxFrame, 2);
  expect(1, 3);
  expect_nothing();
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
  (void)writer_.add({.size = 10});
  expect_nothing();
  EXPECT_TRUE(writer_.publish());
  EXPECT_FALSE(writer_.publish());
  IngressFrame frame;
  EXPECT_TRUE(reader_.poll(frame));
}

TEST_F(FrameRingTest, WhatWasTakenBackIsNotThere) {
  ASSERT_TRUE(put(10, 1));
  (void)writer_.add({.size = 20});
  writer_.take_back();
  EXPECT_FALSE(writer_.publish());
  ASSERT_TRUE(put(30, 3));
  expect(10, 1);
  expect(30, 3);
}

TEST_F(FrameRingTest, AFullOneTakesNothing) {
  u64 count = 0;
  while (put(4096, static_cast<u8>(count))) ++count;
  EXPECT_GT(count * 4096, FrameRing::kBytes * 9 / 10);
  EXPECT_FALSE(put(4096, 0));
  expect(4096, 0);
  expect(4096, 1);
  EXPECT_TRUE(put(4096, static_cast<u8>(count)));
  for (u64 i = 2; i <= count; ++i) expect(4096, static_cast<u8>(i));
  expect_nothing();
}

TEST_F(FrameRingTest, GoesAroundTheEnd) {
  u8 put_next = 0, expect_next = 0;
  for (int i = 0; i < 700; ++i) ASSERT_TRUE(put(1000, put_next++));
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(put(1000 + static_cast<u32>(i % 50), put_next++));
    IngressFrame frame;
    ASSERT_TRUE(reader_.poll(frame));
    ASSERT_EQ(frame.udp_source_port, expect_next++);
  }
}

TEST_F(FrameRingTest, OthersGoOnWhereItWasLeft) {
  ASSERT_TRUE(put(10, 1));
  expect(10, 1);
  (void)writer_.add({.size = 50});  // by one that ended before it was published
  FrameRingWriter writer(*ring_);
  FrameRingReader reader(*ring_);
  ASSERT_EQ(writer.add({.size = 20}).size(), 20u);
  ASSERT_TRUE(writer.publish());
  IngressFrame frame;
  ASSERT_TRUE(reader.poll(frame));
  EXPECT_EQ(frame.transport.size(), 20u);
  EXPECT_FALSE(reader.poll(frame));
}

TEST_F(FrameRingTest, WhatMakesNoSenseBreaksIt) {
  set_written(FrameRing::kBytes + 8);  // more than it holds
  expect_nothing();
}

TEST_F(FrameRingTest, ARecordThatEndsTooLateBreaksIt) {
  set_record(0, 100);
  set_written(64);
  expect_nothing();
}

TEST_F(FrameRingTest, ARecordThatIsTooLongBreaksIt) {
  set_record(0, FrameRing::kMaxFrame + 1);
  set_written(1 << 20);
  expect_nothing();
}

TEST_F(FrameRingTest, SkippingForEverBreaksIt) {
  set_record(0, RingFrame::kSkip);
  set_written(FrameRing::kBytes);
  expect_nothing();
  set_written(2 * FrameRing::kBytes);
  expect_nothing();
}

TEST_F(FrameRingTest, BetweenThreads) {
  constexpr u32 kFrames = 100'000;
  std::thread writer([this] {
    for (u32 i = 0; i < kFrames;)
      put(8 + i % 3000, static_cast<u8>(i)) ? void(++i) : std::this_thread::yield();
  });
  for (u32 i = 0; i < kFrames;) {
    IngressFrame frame;
    if (!reader_.poll(frame)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(frame.transport.size(), 8 + i % 3000);
    ASSERT_EQ(frame.transport.back(), static_cast<u8>(i + 7 + i % 3000));
    ++i;
  }
  writer.join();
}

}  // namespace
}  // namespace verbena::host
