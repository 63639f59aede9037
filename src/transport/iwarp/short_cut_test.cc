// Requesters whose peer is on the same host: transport/peer_memory.h.
#include "transport/iwarp/short_cut.h"

#include <gtest/gtest.h>

#include "transport/iwarp/iwarp_pair_for_test.h"
#include "transport/near_memory_for_test.h"

namespace verbena::iwarp {
namespace {

using test::End;
using test::EndOptions;
using test::kAllRights;
using test::kIova;
using test::kNow;
using test::kPD;
using test::Pair;
using verbena::test::copy_near;
using Outcomes = std::vector<std::pair<u64, WQEStatus>>;

constexpr u32 kLong = 64u << 10;
constexpr StreamAgreement kAgreement{.atomics_and_immediate = true, .ird = 4, .ord = 4};

// The memory of `target`, as a driver reaches it.
class NearMemory final : public PeerMemory, public PeerMemoryFinder {
 public:
  std::shared_ptr<PeerMemory> find(const QPAttributes&) override {
    ++looks;
    return target == nullptr ? nullptr : std::shared_ptr<PeerMemory>(std::shared_ptr<void>(), this);
  }
  bool has_executed(const QPAttributes&, PSN before) const override {
    return progress->is_at(target->qp.qpn, before);
  }
  bool write(const QPAttributes&, std::span<const MemoryPiece> from,
             std::span<const PeerRange> to) override {
    return copy(to, from, Access::kRemoteWrite);
  }
  bool read(const QPAttributes&, std::span<const PeerRange> from,
            std::span<const MemoryPiece> to) override {
    return copy(from, to, Access::kRemoteRead);
  }

  const std::unique_ptr<LocalProgress> progress = std::make_unique<LocalProgress>();
  End* target = nullptr;
  u32 looks = 0, done = 0;

 private:
  bool copy(std::span<const PeerRange> ranges, std::span<const MemoryPiece> pieces, Access need) {
    if (target->qp.state != QPState::kRTS || !target->qp.remote_access.has(need)) return false;
    if (!copy_near(*target, kPD, ranges, pieces, need)) return false;
    ++done;
    return true;
  }
};

Outcomes outcomes_of(const std::vector<CQE>& cqes) {
  Outcomes out;
  for (const CQE& cqe : cqes) out.emplace_back(cqe.wr_id, cqe.status);
  return out;
}

SendWR request(const End& peer, SendOp op, u64 wr_id, u64 offset) {
  SendWR wr;
  wr.wr_id = wr_id;
  wr.op = op;
  if (op == SendOp::kSend) return wr;
  wr.remote_address = kIova + offset;
  wr.r_key = peer.keys.r_key;
  return wr;
}

EndOptions near_options(NearMemory* to_peer, LocalProgress* own, EndOptions options = {}) {
  options.peers = to_peer;
  options.progress = own;
  return options;
}

// Bytes that repeat every 256.
void fill_pattern(std::span<u8> buffer, u32 step, u32 first) {
  for (u32 i = 0; i < 256; ++i) buffer[i] = static_cast<u8>(i * step + first);
  for (std::size_t at = 256; at < buffer.size(); at += 256)
    std::copy_n(buffer.begin(), 256, buffer.begin() + static_cast<i64>(at));
}

// Two ends that know each other's memory, unless `local` is false.
struct NearPair {
  explicit NearPair(bool local = true, const EndOptions& target = {})
      : pair({}, near_options(local ? &of_b : nullptr, of_a.progress.get()),
             near_options(local ? &of_a : nullptr, of_b.progress.get(), target)) {
    of_a.target = &pair.a;
    of_b.target = &pair.b;
    fill_pattern(pair.a.buffer, 7, 0);
    fill_pattern(pair.b.buffer, 11, 1);
    pair.begin(kAgreement);
  }
  // The first message of the stream is never a copy.
  void greet() {
    pair.b.post_receive(1000, {});
    EXPECT_EQ(pair.a.post(request(pair.b, SendOp::kSend, 1000, 0), {}), PostError::kOk);
    pair.run();
    pair.a.sent.clear();
    pair.b.received.clear();
    pair.a_to_b.clear();
    pair.b_to_a.clear();
  }
  PostError post(SendOp op, u64 wr_id, u64 offset, u32 length) {
    return pair.a.post(request(pair.b, op, wr_id, offset), {pair.a.sge(offset, length)});
  }
  bool same(u64 offset, u64 length) const {
    return std::equal(pair.a.buffer.begin() + static_cast<i64>(offset),
                      pair.a.buffer.begin() + static_cast<i64>(offset + length),
                      pair.b.buffer.begin() + static_cast<i64>(offset));
  }
  const EngineCounters& counters() const { return pair.a.engine->counters(); }

  NearMemory of_a, of_b;
  Pair pair;
};

TEST(IWARPShortCut, WritesAndReadsNeedNoMessages) {
  NearPair near;
  near.greet();
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 1, 0, 3000), PostError::kOk);
  EXPECT_EQ(near.post(SendOp::kRDMARead, 2, 4000, 200'000), PostError::kOk);
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 3, 300'000, 8), PostError::kOk);
  near.pair.run();
  EXPECT_TRUE(near.pair.a_to_b.empty());
  EXPECT_TRUE(near.pair.b_to_a.empty());
  EXPECT_EQ(
      outcomes_of(near.pair.a.sent),
      (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
  EXPECT_TRUE(near.same(0, 3000) && near.same(4000, 200'000) && near.same(300'000, 8));
  EXPECT_EQ(near.counters().local_write_requests, 2u);
  EXPECT_EQ(near.counters().local_read_requests, 1u);
  EXPECT_EQ(near.counters().local_read_bytes, 200'000u);
  EXPECT_EQ(near.pair.a.engine->next_timer(), Time::never());
}

// RFC 5044, 7.1.2: the passive end waits for it.
TEST(IWARPShortCut, TheFirstMessageIsSent) {
  NearPair near;
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 1, 0, 100), PostError::kOk);
  near.pair.run();
  EXPECT_FALSE(near.pair.a_to_b.empty());
  EXPECT_EQ(near.of_b.done, 0u);
}

TEST(IWARPShortCut, AShortWriteFollowsWhatIsUnderWay) {
  NearPair near;
  near.greet();
  near.pair.b.post_receive(1, {near.pair.b.sge(500'000, 100)});
  EXPECT_EQ(near.post(SendOp::kSend, 1, 500'000, 100), PostError::kOk);
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 2, 0, 100), PostError::kOk);
  StreamGather gather;
  near.pair.a.engine->gather(gather, kNow);
  EXPECT_EQ(near.of_b.done, 0u);
  EXPECT_EQ(gather.bytes(), fpdu_bytes(kUntaggedHeader + 100) + fpdu_bytes(kTaggedHeader + 100));
}

// It overtakes no SEND.
TEST(IWARPShortCut, ALongWriteWaitsUntilThePeerHasExecutedAll) {
  NearPair near;
  near.greet();
  End& a = near.pair.a;
  End& b = near.pair.b;
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 0, 100'000, 10), PostError::kOk);
  near.pair.run();
  EXPECT_EQ(near.of_b.done, 1u);
  b.post_receive(1, {b.sge(500'000, 100)});
  EXPECT_EQ(near.post(SendOp::kSend, 1, 500'000, 100), PostError::kOk);
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 2, 0, kLong), PostError::kOk);
  a.engine->on_timer(kNow);
  StreamGather gather;
  a.engine->gather(gather, kNow);
  std::vector<u8> wire;
  gather.visit_range(0, gather.bytes(),
                     [&wire](Bytes part) { wire.insert(wire.end(), part.begin(), part.end()); });
  a.engine->on_sent(gather, gather.bytes(), kNow);
  gather.clear();
  a.engine->gather(gather, kNow);
  EXPECT_TRUE(gather.empty());
  EXPECT_EQ(near.of_b.done, 1u);
  const Time wake = a.engine->next_timer();
  ASSERT_NE(wake, Time::never());
  b.take(wire);
  a.engine->on_timer(wake);
  a.engine->gather(gather, wake);
  EXPECT_TRUE(gather.empty());
  EXPECT_EQ(near.of_b.done, 2u);
  EXPECT_TRUE(near.same(0, kLong));
  EXPECT_EQ(a.engine->next_timer(), Time::never());
}

TEST(IWARPShortCut, APeerThatExecutesNothingIsNotWaitedForLong) {
  NearPair near;
  near.greet();
  End& a = near.pair.a;
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 0, 0, kLong), PostError::kOk);
  near.pair.run();
  EXPECT_EQ(near.of_b.done, 1u);
  EXPECT_EQ(near.post(SendOp::kSend, 1, 0, 100), PostError::kOk);
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 2, 0, kLong), PostError::kOk);
  StreamGather gather;
  a.engine->gather(gather, kNow);
  a.engine->on_sent(gather, gather.bytes(), kNow);
  u32 wakes = 0;
  Time now = kNow;
  for (gather.clear(); gather.empty() && wakes < 1000; ++wakes) {
    a.engine->gather(gather, now);
    if (!gather.empty()) break;
    now = a.engine->next_timer();
    ASSERT_NE(now, Time::never());
    a.engine->on_timer(now);
  }
  EXPECT_FALSE(gather.empty());
  EXPECT_LE(now, kNow + ms(22));
  EXPECT_LT(wakes, 40u);
}

// It waited for ever: no copy could be made, and no message was.
TEST(IWARPShortCut, ALongRequestThatCannotBeCopiedBecomesAMessage) {
  for (const SendOp op : {SendOp::kRDMAWrite, SendOp::kRDMARead}) {
    NearPair near;
    near.greet();
    SGE wrong = near.pair.a.sge(0, kLong);
    wrong.l_key = LKey{wrong.l_key.value ^ 1};
    EXPECT_EQ(near.pair.a.post(request(near.pair.b, op, 1, 0), {wrong}), PostError::kOk);
    near.pair.run();
    EXPECT_EQ(outcomes_of(near.pair.a.sent), (Outcomes{{1, WQEStatus::kLocalProtection}}));
  }
}

TEST(IWARPShortCut, SearchesInVainAreRare) {
  NearPair near;
  near.of_b.target = nullptr;
  near.greet();
  for (u64 id = 0; id < 1000; ++id) {
    EXPECT_EQ(near.post(SendOp::kRDMAWrite, id, 0, 10), PostError::kOk);
    near.pair.run();
  }
  EXPECT_LE(near.of_b.looks, 11u);
  EXPECT_EQ(near.pair.a.sent.size(), 1000u);
}

// --- refusals: the same with the path and without

struct Refused {
  const char* name;
  EndOptions target;
  SendOp op;
  u64 offset;
  bool wrong_key = false, invalidated = false;
};

std::vector<Refused> refusals() {
  const AccessFlags local = Access::kLocalWrite;
  const u64 end = EndOptions{}.memory_bytes;
  std::vector<Refused> all;
  for (const SendOp op : {SendOp::kRDMAWrite, SendOp::kRDMARead}) {
    all.push_back({"no such STag", {}, op, 0, true});
    all.push_back({"out of bounds", {}, op, end - 10});
    all.push_back({"no right of the region", {.access = local}, op, 0});
    all.push_back({"no right of the QP", {.qp_access = local}, op, 0});
    all.push_back({"deregistered", {}, op, 0, false, true});
  }
  return all;
}

struct Answer {
  Outcomes completions;
  std::optional<TerminateReason> terminate;
  std::vector<EngineEvent> events_here, events_there;
  bool operator==(const Answer&) const = default;
};

Answer answer_to(const Refused& refused, bool local) {
  NearPair near(local, refused.target);
  near.greet();
  EXPECT_EQ(near.post(SendOp::kRDMAWrite, 1, 0, 0), PostError::kOk);  // to nothing: allowed
  if (refused.invalidated) {
    EXPECT_TRUE(near.pair.b.memory.deregister_mr(near.pair.b.keys.l_key) == Status::kOk);
  }
  SendWR wr = request(near.pair.b, refused.op, 2, refused.offset);
  if (refused.wrong_key) wr.r_key = RKey{wr.r_key.value ^ 0x1100};
  EXPECT_EQ(near.pair.a.post(wr, {near.pair.a.sge(0, 100)}), PostError::kOk);
  near.pair.run();
  EXPECT_EQ(near.of_b.done, 0u) << refused.name;
  return {outcomes_of(near.pair.a.sent), near.pair.a.engine->received_terminate(),
          near.pair.a.events, near.pair.b.events};
}

TEST(IWARPShortCut, RefusalsAreThoseOfTheStream) {
  for (const Refused& refused : refusals()) {
    const Answer by_stream = answer_to(refused, false);
    EXPECT_TRUE(by_stream.terminate.has_value()) << refused.name;
    EXPECT_EQ(answer_to(refused, true), by_stream)
        << refused.name << (refused.op == SendOp::kRDMARead ? ", READ" : ", WRITE");
  }
}

// --- any mix gives the same memory and the same completions

void post_mix(NearPair& near, u64 seed) {
  PRNG prng(seed);
  End& a = near.pair.a;
  End& b = near.pair.b;
  for (u64 id = 0; id < 60; ++id) {
    const u64 at = prng.below(16) * 65'536, to = prng.below(16) * 65'536;
    const u32 length = static_cast<u32>(prng.below(4) == 0 ? 65'536 : prng.below(3000));
    const SendOp op =
        std::array{SendOp::kSend, SendOp::kRDMAWrite, SendOp::kRDMARead}[prng.below(3)];
    SendWR wr = request(b, op, id, to);
    wr.fence = true;  // else what is behind a READ may use its memory before, or after
    if (op == SendOp::kSend) b.post_receive(id, {b.sge(to, length)});
    EXPECT_EQ(a.post(wr, {a.sge(at, length)}), PostError::kOk);
    if (prng.below(4) == 0) near.pair.run();
  }
  near.pair.run();
}

TEST(IWARPShortCut, AnyMixHasTheResultOfTheStream) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    NearPair near, stream(false);
    near.greet();
    stream.greet();
    post_mix(near, seed);
    post_mix(stream, seed);
    EXPECT_EQ(outcomes_of(near.pair.a.sent), outcomes_of(stream.pair.a.sent)) << seed;
    EXPECT_EQ(near.pair.a.sent.size(), 60u);
    EXPECT_TRUE(near.pair.a.buffer == stream.pair.a.buffer) << seed;
    EXPECT_TRUE(near.pair.b.buffer == stream.pair.b.buffer) << seed;
    EXPECT_NE(near.of_b.done, 0u);
  }
}

}  // namespace
}  // namespace verbena::iwarp
