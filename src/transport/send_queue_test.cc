#include "transport/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "base/prng.h"

namespace verbena {
namespace {

SGE plain(const std::vector<u8>& bytes) {
  return {reinterpret_cast<u64>(bytes.data()), static_cast<u32>(bytes.size()), LKey{}};
}

SendWR request(u64 wr_id, std::span<const SGE> sg_list = {}) {
  SendWR wr;
  wr.wr_id = wr_id;
  wr.sg_list = sg_list;
  return wr;
}

SendWR inline_request(std::span<const SGE> sg_list) {
  SendWR wr = request(0, sg_list);
  wr.inline_data = true;
  return wr;
}

TEST(SendQueueTest, HoldsCopiesInOrder) {
  SendQueue queue({.depth = 3, .max_sge = 2});
  std::vector<SGE> list = {{0x1000, 10, LKey{1}}, {0x2000, 20, LKey{2}}};
  ASSERT_EQ(queue.push(request(1, list), Time{}), PostError::kOk);
  ASSERT_EQ(queue.push(request(2), Time{}), PostError::kOk);
  list.assign(2, {});  // the application may reuse its list at once
  EXPECT_EQ(queue.end_index() - queue.begin_index(), 2u);
  EXPECT_EQ(queue.front().wr.wr_id, 1u);
  EXPECT_EQ(queue.front().length_bytes, 30u);
  EXPECT_EQ(queue.front().wr.sg_list[1], (SGE{0x2000, 20, LKey{2}}));
  EXPECT_EQ(queue.at(queue.begin_index() + 1).length_bytes, 0u);
  queue.pop_front();
  EXPECT_EQ(queue.front().wr.wr_id, 2u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, KeepsTheDestinationOfEachRequest) {
  SendQueue queue({.depth = 2}, Addressing::kOfRequest);
  for (u32 i = 0; i < 4; ++i) {
    SendWR wr = request(i);
    wr.destination.flow_label = 10 + i;
    wr.dest_qp = QPN{20 + i};
    wr.q_key = QKey{30 + i};
    ASSERT_EQ(queue.push(wr, Time{}), PostError::kOk);
    wr = {};  // the application may reuse its request at once
    const u64 oldest = i == 0 ? 0 : i - 1;
    const UDDestination& kept = *queue.front().ud;
    EXPECT_EQ(kept.destination.flow_label, 10 + oldest);
    EXPECT_EQ(kept.dest_qp, QPN{static_cast<u32>(20 + oldest)});
    EXPECT_EQ(kept.q_key, QKey{static_cast<u32>(30 + oldest)});
    if (i == 0) continue;
    queue.pop_front();
    queue.free_entries(queue.take_unreported());
  }
}

TEST(SendQueueTest, KeepsTheWindowOfEachBind) {
  SendQueue queue({.depth = 4});
  ASSERT_EQ(queue.push(request(0), Time{}), PostError::kOk);
  for (u32 i = 1; i < 4; ++i) {
    SendWR wr = request(i);
    wr.op = SendOp::kBindMW;
    wr.mw = RKey{i};
    wr.mw_new = RKey{10 + i};
    wr.mw_bind.length = 20 + i;
    ASSERT_EQ(queue.push(wr, Time{}), PostError::kOk);
  }
  EXPECT_EQ(queue.front().binding, nullptr);
  EXPECT_EQ(queue.front().ud, nullptr);
  for (u32 i = 1; i < 4; ++i) {
    queue.pop_front();
    const WindowBinding& kept = *queue.front().binding;
    EXPECT_EQ(kept.mw, RKey{i});
    EXPECT_EQ(kept.mw_new, RKey{10 + i});
    EXPECT_EQ(kept.mw_bind.length, 20 + i);
  }
}

TEST(SendQueueTest, TakesExactlyItsDepth) {
  SendQueue queue({.depth = 5});
  for (u64 id = 0; id < 5; ++id) EXPECT_EQ(queue.push(request(id), Time{}), PostError::kOk);
  EXPECT_EQ(queue.push(request(0), Time{}), PostError::kQueueFull);
  queue.pop_front();
  queue.free_entries(queue.take_unreported());
  EXPECT_EQ(queue.push(request(0), Time{}), PostError::kOk);
  EXPECT_EQ(queue.push(request(0), Time{}), PostError::kQueueFull);
}

TEST(SendQueueTest, AnEntryIsFreeOnlyWhenItsCQEHasBeenPolled) {
  SendQueue queue({.depth = 3});
  for (u64 id = 0; id < 3; ++id) ASSERT_EQ(queue.push(request(id), Time{}), PostError::kOk);
  queue.pop_front();
  queue.pop_front();
  EXPECT_EQ(queue.push(request(3), Time{}), PostError::kQueueFull) << "complete, and not polled";
  const u32 reported = queue.take_unreported();
  EXPECT_EQ(reported, 2u) << "the CQE of the second reports the first, which was unsignaled, too";
  EXPECT_EQ(queue.take_unreported(), 0u);
  queue.free_entries(reported);
  for (u64 id = 3; id < 5; ++id) EXPECT_EQ(queue.push(request(id), Time{}), PostError::kOk);
  EXPECT_EQ(queue.push(request(5), Time{}), PostError::kQueueFull);
  queue.clear();
  for (u64 id = 0; id < 3; ++id) EXPECT_EQ(queue.push(request(id), Time{}), PostError::kOk);
}

TEST(SendQueueTest, DepthZeroTakesNone) {
  SendQueue queue({.depth = 0});
  EXPECT_EQ(queue.push(request(0), Time{}), PostError::kQueueFull);
}

TEST(SendQueueTest, RefusesMoreElementsThanItsLimit) {
  SendQueue queue({.depth = 4, .max_sge = 2});
  const std::array<SGE, 3> list{};
  EXPECT_EQ(queue.push(request(0, list), Time{}), PostError::kTooManySGEs);
  EXPECT_EQ(queue.push(request(0, std::span(list).first(2)), Time{}), PostError::kOk);
}

// IBTA 9.7.7: up to 2^31 bytes.
TEST(SendQueueTest, MessageMayBe2To31BytesAndNotOneMore) {
  SendQueue queue({.depth = 4, .max_sge = 3});
  const std::array<SGE, 3> list = {SGE{0, 1u << 31, LKey{}}, SGE{0, 1, LKey{}},
                                   SGE{0, ~u32{0}, LKey{}}};
  EXPECT_EQ(queue.push(request(0, std::span(list).first(1)), Time{}), PostError::kOk);
  EXPECT_EQ(queue.front().length_bytes, 1u << 31);
  EXPECT_EQ(queue.push(request(0, std::span(list).first(2)), Time{}), PostError::kMessageTooLong);
  EXPECT_EQ(queue.push(request(0, list), Time{}), PostError::kMessageTooLong);
  EXPECT_EQ(queue.end_index() - queue.begin_index(), 1u);
}

TEST(SendQueueTest, InlineBytesAreCopiedAtOnceFromPlainAddresses) {
  SendQueue queue({.depth = 2, .max_sge = 1, .max_inline_bytes = 8});
  std::vector<u8> a = {1, 2, 3};
  std::vector<u8> b = {4, 5};
  const std::array<SGE, 3> list = {plain(a), SGE{}, plain(b)};  // inline: max_sge does not bind
  ASSERT_EQ(queue.push(inline_request(list), Time{}), PostError::kOk);
  a.assign(3, 0);
  const SendWQE& wqe = queue.front();
  EXPECT_EQ(wqe.length_bytes, 5u);
  EXPECT_EQ(std::vector<u8>(wqe.inline_bytes, wqe.inline_bytes + 5),
            (std::vector<u8>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(wqe.wr.sg_list.empty());
}

TEST(SendQueueTest, InlineMayFillItsRoomAndNotOneByteMore) {
  SendQueue queue({.depth = 2, .max_inline_bytes = 8});
  const std::vector<u8> bytes(9);
  const std::array<SGE, 1> fits = {SGE{reinterpret_cast<u64>(bytes.data()), 8, LKey{}}};
  const std::array<SGE, 1> too_long = {plain(bytes)};
  EXPECT_EQ(queue.push(inline_request(fits), Time{}), PostError::kOk);
  EXPECT_EQ(queue.push(inline_request(too_long), Time{}), PostError::kInlineTooLong);
}

TEST(SendQueueTest, AgreesWithADequeOverManyWraps) {
  PRNG prng(1);
  SendQueue queue({.depth = 7, .max_sge = 1});
  std::deque<u64> model;
  for (u64 id = 0; id < 10'000; ++id) {
    if (prng.chance(0.5)) {
      const std::array<SGE, 1> list = {SGE{id, static_cast<u32>(id), LKey{}}};
      const PostError result = queue.push(request(id, list), Time{});
      ASSERT_EQ(result, model.size() < 7 ? PostError::kOk : PostError::kQueueFull);
      if (result == PostError::kOk) model.push_back(id);
    } else if (!model.empty()) {
      queue.pop_front();
      queue.free_entries(queue.take_unreported());
      model.pop_front();
    }
    ASSERT_EQ(queue.end_index() - queue.begin_index(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      const SendWQE& wqe = queue.at(queue.begin_index() + i);
      ASSERT_EQ(wqe.wr.wr_id, model[i]);
      ASSERT_EQ(wqe.wr.sg_list[0].address, model[i]);
    }
  }
}

TEST(SendQueueTest, WhatWasJustPushedCanBeTakenBack) {
  SendQueue queue({.depth = 3});
  for (u64 id = 0; id < 3; ++id) ASSERT_EQ(queue.push(request(id), Time{}), PostError::kOk);
  queue.take_back(2);
  EXPECT_EQ(queue.push(request(7), Time{}), PostError::kOk);
  EXPECT_EQ(queue.at(queue.begin_index()).wr.wr_id, 0u);
  EXPECT_EQ(queue.at(queue.begin_index() + 1).wr.wr_id, 7u);
}

}  // namespace
}  // namespace verbena
