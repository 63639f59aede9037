#include "host/stats/snapshot.h"

#include <gtest/gtest.h>

#include <cstring>

namespace verbena::host {
namespace {

StatsAnswer example() {
  StatsAnswer answer;
  answer.nonce = 0x1122334455667788;
  answer.adapter.device = snapshot_name("verbena0");
  answer.adapter.interface = snapshot_name("eth0");
  answer.adapter.ipv4 = GID::from_ipv4(0x0a000001);
  answer.adapter.qp_count = 2;
  answer.adapter.next = 0x4003;
  answer.adapter.counters.port_xmit_packets = 7;
  answer.adapter.counters.transport.retransmitted_packets = 9;
  answer.adapter.link.handed_on = 3;
  answer.qps.resize(2);
  answer.qps[0].qpn = QPN{0x4001};
  answer.qps[0].sq_psn = PSN{0x123456};
  answer.qps[0].rq_psn = PSN{0xfedcba};
  answer.qps[1].qpn = QPN{0x4002};
  answer.qps[1].type = QPType::kUD;
  answer.qps[1].state = QPState::kError;
  answer.qps[1].traffic.sent_bytes = 4096;
  answer.qps[1].transport.rnr_nak_retry_err = 5;
  return answer;
}

TEST(SnapshotTest, AQuestionBothWays) {
  const StatsQuestion question{.nonce = 42, .first = 0x4001, .subject = StatsSubject::kMRs};
  const auto bytes = question.encode();
  EXPECT_EQ(StatsQuestion::decode(bytes), question);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(StatsQuestion::decode(std::span(bytes).first(n)).has_value()) << n;
  std::vector<u8> longer(bytes.begin(), bytes.end());
  longer.push_back(0);
  EXPECT_FALSE(StatsQuestion::decode(longer).has_value());
}

TEST(SnapshotTest, AnAnswerBothWays) {
  const std::vector<u8> bytes = example().encode();
  const std::optional<StatsAnswer> answer = StatsAnswer::decode(bytes);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->nonce, example().nonce);
  EXPECT_STREQ(answer->adapter.device.data(), "verbena0");
  EXPECT_EQ(answer->adapter.next, 0x4003u);
  EXPECT_EQ(answer->adapter.counters.transport.retransmitted_packets, 9u);
  EXPECT_EQ(answer->adapter.link.handed_on, 3u);
  ASSERT_EQ(answer->qps.size(), 2u);
  EXPECT_EQ(answer->qps[0].sq_psn, PSN{0x123456});
  EXPECT_EQ(answer->qps[0].rq_psn, PSN{0xfedcba});
  EXPECT_EQ(answer->qps[1].state, QPState::kError);
  EXPECT_EQ(answer->qps[1].traffic.sent_bytes, 4096u);
  EXPECT_EQ(answer->qps[1].transport.rnr_nak_retry_err, 5u);
  EXPECT_EQ(answer->encode(), bytes);
}

TEST(SnapshotTest, EveryTruncationIsRefused) {
  const std::vector<u8> bytes = example().encode();
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(StatsAnswer::decode(std::span(bytes).first(n)).has_value()) << n;
}

TEST(SnapshotTest, AFullAnswerFitsAndMoreIsRefused) {
  StatsAnswer answer = example();
  answer.qps.resize(StatsAnswer::kMaxQPs);
  std::vector<u8> bytes = answer.encode();
  EXPECT_LE(bytes.size(), kMaxStatsAnswerSize);
  EXPECT_TRUE(StatsAnswer::decode(bytes).has_value());
  constexpr std::size_t kCountAt = 24;
  const u32 more = StatsAnswer::kMaxQPs + 1;
  std::memcpy(bytes.data() + kCountAt, &more, sizeof(more));
  bytes.resize(bytes.size() + sizeof(QPSnapshot));
  EXPECT_FALSE(StatsAnswer::decode(bytes).has_value());
}

TEST(SnapshotTest, AnotherVersionIsRefused) {
  std::vector<u8> bytes = example().encode();
  ++bytes[4];
  EXPECT_FALSE(StatsAnswer::decode(bytes).has_value());
  EXPECT_EQ(StatsAnswer::nonce_of(bytes), example().nonce);
  ++bytes[0];
  EXPECT_FALSE(StatsAnswer::nonce_of(bytes).has_value());
}

TEST(SnapshotTest, NamesArePrintable) {
  EXPECT_STREQ(snapshot_name("a\x1b[2Jb").data(), "a?[2Jb");
  EXPECT_STREQ(snapshot_name("a-name-that-is-too-long").data(), "a-name-that-is-");
  StatsAnswer answer = example();
  answer.adapter.device[3] = '\x1b';
  EXPECT_FALSE(StatsAnswer::decode(answer.encode()).has_value());
  answer = example();
  answer.adapter.interface.fill('x');  // no end
  EXPECT_FALSE(StatsAnswer::decode(answer.encode()).has_value());
}

TEST(SnapshotTest, WhatIsNoEnumeratorIsRefused) {
  for (const std::size_t field : {offsetof(QPSnapshot, type), offsetof(QPSnapshot, state)}) {
    std::vector<u8> bytes = example().encode();
    const std::size_t qps = bytes.size() - 2 * sizeof(QPSnapshot);
    bytes[qps + field] = 200;
    EXPECT_FALSE(StatsAnswer::decode(bytes).has_value()) << field;
  }
}

TEST(SnapshotTest, AnAnswerOfObjectsIsNotTakenForOneOfQPs) {
  StatsAnswer answer = example();
  answer.qps.clear();
  answer.subject = StatsSubject::kMRs;
  answer.objects = {{.number = 7, .pd = 3, .key = 0x712, .size = 4096}, {.number = 8}};
  std::vector<u8> bytes = answer.encode();
  const std::optional<StatsAnswer> decoded = StatsAnswer::decode(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->objects, answer.objects);
  EXPECT_TRUE(decoded->qps.empty());
  EXPECT_EQ(decoded->encode(), bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(StatsAnswer::decode(std::span(bytes).first(n)).has_value()) << n;
  bytes[bytes.size() - sizeof(ObjectInfo) + offsetof(ObjectInfo, is_xrc)] = 2;
  EXPECT_FALSE(StatsAnswer::decode(bytes).has_value()) << "no bool";
  constexpr std::size_t kSubjectAt = 28;
  bytes = answer.encode();
  for (const u8 subject : {u8{0}, u8{kStatsSubjects}}) {
    bytes[kSubjectAt] = subject;
    EXPECT_FALSE(StatsAnswer::decode(bytes).has_value()) << int{subject};
  }
}

TEST(SnapshotTest, AQuestionOfNoSubjectIsRefused) {
  auto bytes = StatsQuestion{.nonce = 1}.encode();
  constexpr std::size_t kSubjectAt = 20;
  bytes[kSubjectAt] = u8{kStatsSubjects};
  EXPECT_FALSE(StatsQuestion::decode(bytes).has_value());
}

}  // namespace
}  // namespace verbena::host
