// Tests an adapter and an observer in one process, and the answers to a stranger in another.
#include "host/stats/stats_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "host/adapter.h"
#include "host/stats/stats_reader.h"

namespace verbena::host {
namespace {

LocalAddress stats_address_of(const char* ip) { return choose_local_addresses(ip)->front(); }

std::vector<ObservedAdapter> observed_of_this_process() {
  Expected<StatsReader> reader = StatsReader::open();
  EXPECT_TRUE(reader.has_value());
  Expected<Observation> observation = reader->observe();
  EXPECT_TRUE(observation.has_value());
  std::erase_if(observation->adapters, [](const auto& a) { return a.pid != ::getpid(); });
  return observation->adapters;
}

TEST(StatsNameTest, BothWays) {
  const StatsName name{.user = 1000, .slot = 17};
  EXPECT_EQ(name.to_string(), "verbena-stats-1000-17");
  EXPECT_EQ(StatsName::parse("verbena-stats-1000-17"), name);
  for (const char* other :
       {"", "verbena-stats-", "verbena-stats-1000", "verbena-stats-1000-", "verbena-stats-1000-17x",
        "verbena-stats-01000-17", "verbena-1000-17", "verbena-stats-1000-0",
        "verbena-stats-1000-1023", "verbena-stats--1-17", "verbena-stats-99999999999-17"})
    EXPECT_FALSE(StatsName::parse(other).has_value()) << other;
}

TEST(StatsNameTest, FoundInProcNetUnix) {
  constexpr const char* kText =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 4711 @verbena-stats-1000-17\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 4712 @verbena-stats-0-3\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 4713 /tmp/verbena-stats-1000-18\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 4714\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 4711 @verbena-stats-1000-17\n";
  EXPECT_EQ(stats_names_in(kText, 1000), (std::vector{StatsName{.user = 1000, .slot = 17}}));
  EXPECT_EQ(stats_names_in(kText, 0).size(), 2u);
  EXPECT_TRUE(stats_names_in(kText, 1).empty());
}

TEST(StatsPortTest, AnAdapterIsSeenWhileItIsThere) {
  auto adapter = Adapter::open(stats_address_of("127.0.0.83"));
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  const std::vector<ObservedAdapter> seen = observed_of_this_process();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].adapter.ipv4, GID::parse("127.0.0.83"));
  EXPECT_STREQ(seen[0].adapter.interface.data(), "lo");
  EXPECT_EQ(seen[0].adapter.qp_count, 0u);
  EXPECT_TRUE(seen[0].qps.empty());
  adapter->reset();
  EXPECT_TRUE(observed_of_this_process().empty());
}

// More than fit into one answer: asked for one answer after the other.
TEST(StatsPortTest, ManyQPsAreAllSeen) {
  constexpr u32 kCount = 3 * StatsAnswer::kMaxQPs + 1;
  const auto adapter = Adapter::open(stats_address_of("127.0.0.83"));
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  {
    const Adapter::Session session = (*adapter)->enter();
    ProtectionDomain* const pd = session->alloc_pd().value();
    CompletionQueue* const cq = session->create_cq(16, nullptr).value();
    for (u32 i = 0; i < kCount; ++i)
      ASSERT_TRUE(session
                      ->create_qp({.type = QPType::kUD,
                                   .pd = pd,
                                   .send_cq = cq,
                                   .receive_cq = cq,
                                   .send = {.depth = 1, .max_sge = 1},
                                   .receive = {.depth = 1, .max_sge = 1}})
                      .has_value());
  }
  const std::vector<ObservedAdapter> seen = observed_of_this_process();
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_EQ(seen[0].qps.size(), kCount);
  EXPECT_EQ(seen[0].adapter.qp_count, kCount);
  for (u32 i = 1; i < kCount; ++i)
    ASSERT_GT(seen[0].qps[i].qpn.value, seen[0].qps[i - 1].qpn.value);
  EXPECT_EQ(seen[0].qps[0].type, QPType::kUD);
  EXPECT_EQ(seen[0].qps[0].state, QPState::kReset);
}

TEST(StatsPortTest, ASnapshotBeginsWhereItIsAskedTo) {
  DeviceConfig config;
  config.first_qpn = QPN{0x100};
  config.limits.max_qp = 8;
  Device device(config);
  ProtectionDomain* const pd = device.alloc_pd().value();
  CompletionQueue* const cq = device.create_cq(16, nullptr).value();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(device.create_qp({.type = QPType::kUC, .pd = pd, .send_cq = cq, .receive_cq = cq}));
  const StatsAnswer all = take_snapshot({}, device, {}, {}, Time());
  EXPECT_EQ(all.qps.size(), 3u);
  EXPECT_EQ(all.adapter.next, 0u);
  const StatsAnswer last = take_snapshot({}, device, {}, {.first = 0x102}, Time());
  ASSERT_EQ(last.qps.size(), 1u);
  EXPECT_EQ(last.qps[0].qpn, QPN{0x102});
  EXPECT_TRUE(take_snapshot({}, device, {}, {.first = 0x103}, Time()).qps.empty());
}

TEST(StatsPortTest, ObjectsOfEachKindAreListedAndCounted) {
  Device device(DeviceConfig{});
  ProtectionDomain* const unused = device.alloc_pd().value();
  ProtectionDomain* const pd = device.alloc_pd().value();
  CompletionQueue* const cq = device.create_cq(16, nullptr).value();
  SharedReceiveQueue* const srq =
      device.create_srq({.pd = pd, .limits = {.depth = 8, .max_sge = 1}}).value();
  ASSERT_TRUE(device.create_qp(
      {.type = QPType::kRC, .pd = pd, .send_cq = cq, .receive_cq = cq, .srq = srq}));
  std::array<u8, 64> memory{};
  const MRKeys keys =
      device.memory().register_mr(pd->id, memory.data(), memory.size(), 0, {}).value();
  ASSERT_TRUE(device.memory().allocate_mw(pd->id, MWType::k2).has_value());

  const auto list = [&](StatsSubject subject) {
    const StatsAnswer answer = take_snapshot({}, device, {}, {.subject = subject}, Time());
    EXPECT_EQ(answer.subject, subject);
    EXPECT_EQ(answer.adapter.next, 0u);
    EXPECT_EQ(answer.adapter.object_counts, (std::array<u32, kObjectKinds>{2, 1, 1, 1}));
    const std::optional<StatsAnswer> decoded = StatsAnswer::decode(answer.encode());
    EXPECT_TRUE(decoded.has_value() && decoded->objects == answer.objects);
    return answer.objects;
  };
  const u32 pdn = pd->id.value;
  EXPECT_EQ(list(StatsSubject::kPDs),
            (std::vector<ObjectInfo>{{.number = unused->id.value},
                                     {.number = pdn, .uses = 4}}));  // QP, SRQ, MR, MW
  const std::vector<ObjectInfo> cqs = list(StatsSubject::kCQs);
  ASSERT_EQ(cqs.size(), 1u);
  EXPECT_EQ(cqs[0].uses, 2u);
  EXPECT_GE(cqs[0].size, 16u);
  EXPECT_EQ(list(StatsSubject::kMRs), (std::vector<ObjectInfo>{{.number = keys.l_key.value >> 8,
                                                                .pd = pdn,
                                                                .key = keys.l_key.value,
                                                                .size = memory.size()}}));
  const std::vector<ObjectInfo> srqs = list(StatsSubject::kSRQs);
  ASSERT_EQ(srqs.size(), 1u);
  EXPECT_EQ(srqs[0].pd, pdn);
  EXPECT_EQ(srqs[0].uses, 1u);
  EXPECT_FALSE(srqs[0].is_xrc);
}

// More than an answer holds, with windows and free keys between them: each region is listed once.
TEST(StatsPortTest, RegionsGoOnWhereTheLastAnswerEnded) {
  constexpr u32 kCount = 2 * StatsAnswer::kMaxObjects + 1;
  Device device(DeviceConfig{});
  const PDId pd = device.alloc_pd().value()->id;
  std::array<u8, 64> memory{};
  std::set<u32> registered, listed;
  for (u32 i = 0; i < kCount; ++i) {
    ASSERT_TRUE(device.memory().allocate_mw(pd, MWType::k1).has_value());
    registered.insert(
        device.memory().register_mr(pd, memory.data(), memory.size(), 0, {}).value().l_key.value);
  }
  StatsQuestion question{.subject = StatsSubject::kMRs};
  std::size_t seen = 0;
  do {
    const StatsAnswer answer = take_snapshot({}, device, {}, question, Time());
    EXPECT_EQ(answer.adapter.object_counts[static_cast<u32>(ObjectKind::kMR)], kCount);
    for (const ObjectInfo& region : answer.objects) listed.insert(region.key);
    seen += answer.objects.size();
    question.first = answer.adapter.next;
  } while (question.first != 0);
  EXPECT_EQ(seen, kCount);
  EXPECT_EQ(listed, registered);
}

}  // namespace
}  // namespace verbena::host
