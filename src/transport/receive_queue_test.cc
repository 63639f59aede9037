#include "transport/receive_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "base/prng.h"

namespace verbena {
namespace {

TEST(ReceiveQueueTest, TakesOutCopiesInOrder) {
  ReceiveQueue queue({.depth = 2, .max_sge = 2});
  std::array<SGE, 2> list = {SGE{0x1000, 10, LKey{1}}, SGE{0x2000, 0xffffffff, LKey{2}}};
  ASSERT_EQ(queue.push({.wr_id = 1, .sg_list = list}), PostError::kOk);
  ASSERT_EQ(queue.push({.wr_id = 2, .sg_list = {}}), PostError::kOk);
  list = {};
  ReceiveWQE wqe;
  ASSERT_TRUE(queue.take(wqe));
  EXPECT_EQ(wqe.wr_id, 1u);
  EXPECT_EQ(wqe.length_bytes, u64{0xffffffff} + 10);  // room may exceed 32 bits
  ASSERT_EQ(wqe.sg_list().size(), 2u);
  EXPECT_EQ(wqe.sg_list()[0], (SGE{0x1000, 10, LKey{1}}));
  ASSERT_TRUE(queue.take(wqe));
  EXPECT_EQ(wqe.wr_id, 2u);
  EXPECT_EQ(wqe.length_bytes, 0u);
  EXPECT_TRUE(wqe.sg_list().empty());
  EXPECT_FALSE(queue.take(wqe));
}

TEST(ReceiveQueueTest, TakesExactlyItsDepth) {
  ReceiveQueue queue({.depth = 3});
  for (u64 id = 0; id < 3; ++id)
    EXPECT_EQ(queue.push({.wr_id = id, .sg_list = {}}), PostError::kOk);
  EXPECT_EQ(queue.push({}), PostError::kQueueFull);
  EXPECT_EQ(queue.pop_wr_id(), 0u);
  EXPECT_EQ(queue.push({}), PostError::kQueueFull) << "its CQE has not been polled";
  queue.free_entries(1);
  EXPECT_EQ(queue.push({.wr_id = 3, .sg_list = {}}), PostError::kOk);
  EXPECT_EQ(queue.size(), 3u);
}

TEST(ReceiveQueueTest, ResizingKeepsTheEntriesThatAreNotFree) {
  ReceiveQueue queue({.depth = 3});
  for (u64 id = 0; id < 3; ++id)
    ASSERT_EQ(queue.push({.wr_id = id, .sg_list = {}}), PostError::kOk);
  EXPECT_EQ(queue.pop_wr_id(), 0u);
  queue.resize(4);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.occupied(), 3u);
  EXPECT_EQ(queue.push({}), PostError::kOk);
  EXPECT_EQ(queue.push({}), PostError::kQueueFull);
  EXPECT_EQ(queue.pop_wr_id(), 1u);
}

TEST(ReceiveQueueTest, DepthZeroTakesNone) {
  ReceiveQueue queue({.depth = 0});
  EXPECT_EQ(queue.push({}), PostError::kQueueFull);
}

TEST(ReceiveQueueTest, RefusesMoreElementsThanItsLimit) {
  ReceiveQueue queue({.depth = 3, .max_sge = 1});
  const std::array<SGE, 2> list{};
  EXPECT_EQ(queue.push({.wr_id = 0, .sg_list = list}), PostError::kTooManySGEs);
  EXPECT_TRUE(queue.empty());
}

TEST(ReceiveQueueTest, AgreesWithADequeOverManyWraps) {
  PRNG prng(1);
  ReceiveQueue queue({.depth = 5, .max_sge = 3});
  std::deque<u64> model;
  for (u64 id = 0; id < 10'000; ++id) {
    const std::array<SGE, 3> list = {SGE{id, 1, LKey{}}, SGE{id, 2, LKey{}}, SGE{id, 3, LKey{}}};
    const auto part = std::span(list).first(id % 4);
    if (prng.chance(0.5)) {
      const PostError result = queue.push({.wr_id = id, .sg_list = part});
      ASSERT_EQ(result, model.size() < 5 ? PostError::kOk : PostError::kQueueFull);
      if (result == PostError::kOk) model.push_back(id);
    } else if (ReceiveWQE wqe; queue.take(wqe)) {
      ASSERT_EQ(wqe.wr_id, model.front());
      ASSERT_EQ(wqe.sge_count, model.front() % 4);
      for (const SGE& sge : wqe.sg_list()) ASSERT_EQ(sge.address, model.front());
      queue.free_entries(1);
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace verbena
