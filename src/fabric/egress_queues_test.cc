#include "fabric/egress_queues.h"

#include <gtest/gtest.h>

#include <map>

namespace verbena::fabric {
namespace {

struct EgressQueuesTest : ::testing::Test {
  void push(u32 queue, u16 bytes = 1000) {
    const FrameIndex index = frames.take();
    frames[index].size_bytes = bytes;
    frames[index].priority = static_cast<u8>(queue);
    queues.push(queue, index, frames);
  }
  // The priority of the next frame; kNoFrame: nothing may go.
  u32 pop(const QueueDiscipline& discipline) {
    const FrameIndex index = queues.pop(discipline, frames);
    if (index == kNoFrame) return kNoFrame;
    const u32 priority = frames[index].priority;
    frames.give_back(index);
    return priority;
  }
  FramePool frames;
  EgressQueues queues;
};

TEST_F(EgressQueuesTest, InOrderAndCounted) {
  EXPECT_EQ(pop({}), kNoFrame);
  push(3, 100);
  push(3, 200);
  EXPECT_EQ(queues.bytes(3), 300u);
  EXPECT_EQ(frames[queues.pop({}, frames)].size_bytes, 100);
  EXPECT_EQ(queues.bytes(3), 200u);
  EXPECT_EQ(pop({}), 3u);
  EXPECT_TRUE(queues.empty());
}

TEST_F(EgressQueuesTest, StrictOnesFirstAndControlBeforeAll) {
  for (const u32 queue : {1u, 5u, 7u, EgressQueues::kControl}) push(queue);
  const QueueDiscipline discipline{.strict = 1 << 5 | 1 << 7};
  EXPECT_EQ(pop(discipline), EgressQueues::kControl);
  EXPECT_EQ(pop(discipline), 7u);
  EXPECT_EQ(pop(discipline), 5u);
  EXPECT_EQ(pop(discipline), 1u);
}

TEST_F(EgressQueuesTest, AFrameOfEachInTurn) {
  for (int i = 0; i < 30; ++i)
    for (const u32 queue : {1u, 2u, 6u}) push(queue, queue == 2 ? 1500 : 64);
  std::map<u32, u32> sent;
  for (int i = 0; i < 60; ++i) ++sent[pop({})];
  EXPECT_EQ(sent, (std::map<u32, u32>{{1, 20}, {2, 20}, {6, 20}}));
}

TEST_F(EgressQueuesTest, BytesByQuantum) {
  for (int i = 0; i < 400; ++i) {
    push(1, 500);
    push(2, 1000);
  }
  QueueDiscipline discipline;
  discipline.quantum[1] = 3000;
  discipline.quantum[2] = 1000;
  std::map<u32, u32> bytes;
  for (int i = 0; i < 280; ++i) {
    const u32 queue = pop(discipline);
    bytes[queue] += queue == 1 ? 500 : 1000;
  }
  EXPECT_NEAR(bytes[1], 3 * bytes[2], 4000);
}

// Shreedhar and Varghese, 1995, 3: the deficit of a queue that runs empty is 0.
TEST_F(EgressQueuesTest, AnEmptyQueueSavesNoQuantum) {
  QueueDiscipline discipline;
  discipline.quantum[1] = 10'000;
  discipline.quantum[2] = discipline.quantum[3] = 1000;
  push(1);
  for (int i = 0; i < 5; ++i) push(2), push(3);
  EXPECT_EQ(pop(discipline), 1u);  // and 9000 bytes of its turn are left
  EXPECT_EQ(pop(discipline), 2u);
  for (int i = 0; i < 30; ++i) push(1);
  EXPECT_EQ(pop(discipline), 3u);
  int in_a_row = 0;
  while (pop(discipline) == 1) ++in_a_row;
  EXPECT_EQ(in_a_row, 10);
}

TEST_F(EgressQueuesTest, ThePausedWaitAndOthersGo) {
  push(3);
  push(4);
  queues.pause(3);
  EXPECT_EQ(pop({}), 4u);
  EXPECT_FALSE(queues.may_send());
  EXPECT_EQ(pop({}), kNoFrame);
  queues.resume(3);
  EXPECT_EQ(pop({}), 3u);
}

}  // namespace
}  // namespace verbena::fabric
