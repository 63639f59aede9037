#include "faults/fpdu_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "base/prng.h"
#include "faults/spec.h"
#include "wire/iwarp/ddp.h"
#include "wire/iwarp/markers.h"
#include "wire/iwarp/rdmap.h"

namespace verbena::faults {
namespace {

using iwarp::RDMAPOpcode;

constexpr Time kBegin = Time() + sec(7);
constexpr u32 kPayload = 1000;

std::vector<Rule> rules_of(std::string_view spec) {
  auto rules = parse_rules(spec);
  EXPECT_TRUE(rules.has_value()) << (rules ? "" : rules.error());
  return std::move(*rules);
}

std::vector<u8> segment(RDMAPOpcode opcode, bool last, u8 fill) {
  std::vector<u8> ulpdu, fpdu;
  if (iwarp::is_tagged(opcode)) {
    ulpdu.resize(iwarp::kTaggedHeader + kPayload, fill);
    iwarp::DDPTagged{.last = last, .control = iwarp::control_of(opcode)}.encode(
        std::span(ulpdu).first<iwarp::kTaggedHeader>());
  } else {
    ulpdu.resize(iwarp::kUntaggedHeader + kPayload, fill);
    iwarp::DDPUntagged{.last = last, .control = iwarp::control_of(opcode)}.encode(
        std::span(ulpdu).first<iwarp::kUntaggedHeader>());
  }
  iwarp::append_fpdu(ulpdu, iwarp::CRCUse::kUsed, fpdu);
  return fpdu;
}

// A message of `count` segments; each has its number as payload.
std::vector<u8> message(RDMAPOpcode opcode, u32 count) {
  std::vector<u8> stream;
  for (u32 i = 1; i <= count; ++i) {
    const std::vector<u8> one = segment(opcode, i == count, static_cast<u8>(i));
    stream.insert(stream.end(), one.begin(), one.end());
  }
  return stream;
}

class FPDUQueueTest : public testing::Test {
 protected:
  void set(std::string_view spec, u64 seed = 1) {
    std::vector<Rule> rules = rules_of(spec);
    EXPECT_EQ(mistake_on_streams(rules), std::nullopt);
    fit_to_streams(rules);
    filter_.emplace(std::move(rules), seed, kBegin);
  }
  FaultFilter* filter() { return filter_ ? &*filter_ : nullptr; }
  void push(Bytes bytes, Time now = kBegin) { queue_.push(bytes, filter(), now); }
  std::vector<u8> take(Time now = kBegin) {
    std::vector<u8> taken;
    for (Bytes due; !(due = queue_.front(filter(), now)).empty(); queue_.pop(due.size()))
      taken.insert(taken.end(), due.begin(), due.end());
    return taken;
  }

  std::optional<FaultFilter> filter_;
  FPDUQueue queue_{Direction::kTransmit, QPN{0x11}, *GID::parse("10.0.0.2")};
};

TEST_F(FPDUQueueTest, AnySplitGivesTheSameBytes) {
  set("delay by=1ms nth=1000");
  const std::vector<u8> stream = message(RDMAPOpcode::kSend, 20);
  PRNG prng(5);
  std::vector<u8> taken;
  for (Bytes left = stream; !left.empty();) {
    const Bytes part = left.first(std::min<std::size_t>(left.size(), prng.in(1, 700)));
    left = left.subspan(part.size());
    push(part);
    const std::vector<u8> more = take();
    taken.insert(taken.end(), more.begin(), more.end());
  }
  EXPECT_EQ(taken, stream);
  EXPECT_EQ(queue_.bytes(), 0u);
  EXPECT_EQ(queue_.next_due(), Time::never());
  EXPECT_EQ(filter_->counters()[0].selected, 20u);
}

TEST_F(FPDUQueueTest, WithoutRulesAllPasses) {
  const std::vector<u8> stream = message(RDMAPOpcode::kWrite, 3);
  push(stream);
  EXPECT_EQ(take(), stream);
}

TEST_F(FPDUQueueTest, WhatFollowsALateOneIsLateToo) {
  set("delay by=3ms nth=2");
  const std::vector<u8> stream = message(RDMAPOpcode::kWrite, 3);
  push(stream);
  EXPECT_EQ(take().size(), stream.size() / 3);
  EXPECT_EQ(queue_.next_due(), kBegin + ms(3));
  EXPECT_TRUE(take(kBegin + us(2999)).empty());
  EXPECT_EQ(take(kBegin + ms(3)).size(), stream.size() / 3 * 2);
}

TEST_F(FPDUQueueTest, ALostOneComesAfterTimeoutsThatDouble) {
  set("loss nth=1-3");
  const std::vector<u8> stream = message(RDMAPOpcode::kSend, 1);
  push(stream);
  const Duration first = FPDUQueue::kFirstTimeout;
  for (const Duration since : {Duration(), first, first * 3})
    EXPECT_TRUE(take(kBegin + since).empty());
  EXPECT_EQ(queue_.next_due(), kBegin + first * 7);
  EXPECT_EQ(take(kBegin + first * 7), stream);
}

TEST_F(FPDUQueueTest, ACRCFindsWhatIsCorrupted) {
  for (u64 seed = 1; seed <= 50; ++seed) {
    queue_ = FPDUQueue(Direction::kTransmit, QPN{0x11}, GID{});
    set("corrupt bits=2 nth=2", seed);
    push(message(RDMAPOpcode::kWrite, 2));
    const std::vector<u8> taken = take();
    ASSERT_EQ(taken.size(), message(RDMAPOpcode::kWrite, 2).size());
    const Bytes all(taken);
    const auto whole = iwarp::FPDUView::decode(all, iwarp::CRCUse::kUsed);
    EXPECT_EQ(whole.status, iwarp::FPDUView::Status::kWhole);
    EXPECT_NE(iwarp::FPDUView::decode(all.subspan(whole.size), iwarp::CRCUse::kUsed).status,
              iwarp::FPDUView::Status::kWhole);
  }
}

TEST_F(FPDUQueueTest, RulesSelectByOperationPlaceAndMessage) {
  for (const auto& [spec, selected] : {std::pair{"loss 0% opcode=send", 4u},
                                       {"loss 0% opcode=read-response", 3u},
                                       {"loss 0% opcode=first", 2u},
                                       {"loss 0% opcode=only", 2u},
                                       {"loss 0% message=2", 3u},
                                       {"loss 0% dir=rx", 0u},
                                       {"loss 0% peer=10.0.0.2", 9u},
                                       {"loss 0% peer=10.0.0.3", 0u},
                                       {"loss 0% qp=0x11", 9u},
                                       {"loss 0% opcode=write", 1u}}) {
    queue_ = FPDUQueue(Direction::kTransmit, QPN{0x11}, *GID::parse("10.0.0.2"));
    set(spec);
    push(message(RDMAPOpcode::kSend, 4));
    push(message(RDMAPOpcode::kReadResponse, 3));
    push(message(RDMAPOpcode::kReadRequest, 1));
    push(message(RDMAPOpcode::kImmediateData, 1));
    EXPECT_EQ(filter_->counters()[0].selected, selected) << spec;
  }
}

// Rules see the same FPDUs in a stream with markers.
TEST_F(FPDUQueueTest, MarkersAreNoFPDUs) {
  set("corrupt opcode=read-request");
  queue_.expect_markers();
  std::vector<u8> stream;
  for (u32 i = 0; i < 20; ++i) {
    std::vector<u8> plain =
        segment(i == 7 ? RDMAPOpcode::kReadRequest : RDMAPOpcode::kSend, true, 1);
    plain.resize(plain.size() - 4);
    iwarp::append_marked(plain, iwarp::CRCUse::kUsed, stream.size(), stream);
  }
  push(stream);
  const std::vector<u8> taken = take();
  ASSERT_EQ(taken.size(), stream.size());
  EXPECT_NE(taken, stream);
  EXPECT_EQ(filter_->counters()[0].selected, 1u);
}

TEST_F(FPDUQueueTest, ARateDelaysAndLosesNothing) {
  set("rate limit=8Mbit");
  const std::vector<u8> stream = message(RDMAPOpcode::kWrite, 100);
  push(stream);
  EXPECT_LT(take(kBegin + ms(50)).size(), stream.size() * 6 / 10);
  EXPECT_LT(queue_.next_due(), kBegin + ms(60));
  EXPECT_GT(take(kBegin + ms(120)).size(), stream.size() * 4 / 10);
  EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(FPDUQueueTest, ObjectsAreBrokenOnce) {
  set("qp-error nth=2");
  push(message(RDMAPOpcode::kSend, 2));
  EXPECT_TRUE(queue_.take_broken_qp());
  EXPECT_FALSE(queue_.take_broken_qp());
  EXPECT_FALSE(queue_.take_overrun_cq());
}

TEST(StreamRules, MistakesAreNamed) {
  for (const std::string_view spec :
       {"mark 1%", "duplicate", "rnr", "nak code=sequence", "corrupt icrc=good", "loss psn=3"}) {
    const auto mistake = mistake_on_streams(rules_of(spec));
    ASSERT_TRUE(mistake.has_value()) << spec;
    EXPECT_NE(mistake->find(spec), std::string::npos);
  }
  EXPECT_EQ(
      mistake_on_streams(rules_of("loss 1%; flap up=1s down=1ms; qp-error; registration-error")),
      std::nullopt);
}

}  // namespace
}  // namespace verbena::faults
