#include "transport/iwarp/engine.h"

#include <gtest/gtest.h>

#include <numeric>

#include "transport/iwarp/iwarp_pair_for_test.h"

namespace verbena::iwarp {
namespace {

using test::Cutting;
using test::End;
using test::EndOptions;
using test::kIova;
using test::kNow;
using test::Pair;

void fill(std::vector<u8>& memory, u8 seed) {
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<u8>(i * 131 + (i >> 8) + seed);
}
bool same(const End& x, u64 at, const End& y, u64 to, u64 length) {
  return std::equal(x.buffer.begin() + static_cast<i64>(at),
                    x.buffer.begin() + static_cast<i64>(at + length),
                    y.buffer.begin() + static_cast<i64>(to));
}
std::vector<std::pair<u64, WQEStatus>> outcomes(const std::vector<CQE>& cqes) {
  std::vector<std::pair<u64, WQEStatus>> out;
  for (const CQE& cqe : cqes) out.emplace_back(cqe.wr_id, cqe.status);
  return out;
}
SendWR write_to(const End& peer, u64 wr_id, u64 offset) {
  SendWR wr;
  wr.wr_id = wr_id;
  wr.op = SendOp::kRDMAWrite;
  wr.remote_address = kIova + offset;
  wr.r_key = peer.keys.r_key;
  return wr;
}
SendWR read_from(const End& peer, u64 wr_id, u64 offset) {
  SendWR wr = write_to(peer, wr_id, offset);
  wr.op = SendOp::kRDMARead;
  return wr;
}
SendWR send(u64 wr_id) {
  SendWR wr;
  wr.wr_id = wr_id;
  return wr;
}

// Every kind of operation, of sizes around those of segments; both ways at once.
void post_all(Pair& pair) {
  fill(pair.a.buffer, 1);
  fill(pair.b.buffer, 7);
  End& a = pair.a;
  End& b = pair.b;
  b.post_receive(100, {b.sge(500'000, 3000), b.sge(504'000, 7000)});
  b.post_receive(101, {b.sge(520'000, 100)});
  b.post_receive(102, {b.sge(521'000, 0)});
  b.post_receive(103, {b.sge(530'000, 50'000)});
  a.post_receive(200, {a.sge(500'000, 20'000)});
  EXPECT_EQ(a.post(write_to(b, 1, 0), {a.sge(0, 1)}), PostError::kOk);
  EXPECT_EQ(a.post(write_to(b, 2, 10'000), {a.sge(10'000, 70'001), a.sge(200'000, 3)}),
            PostError::kOk);
  EXPECT_EQ(a.post(send(3), {a.sge(300'000, 9000)}), PostError::kOk);
  EXPECT_EQ(a.post(read_from(b, 4, 150'000), {a.sge(600'000, 5000), a.sge(610'000, 33'000)}),
            PostError::kOk);
  SendWR solicited = send(5);
  solicited.solicited = true;
  EXPECT_EQ(a.post(solicited, {a.sge(1, 77)}), PostError::kOk);
  EXPECT_EQ(a.post(read_from(b, 6, 0), {}), PostError::kOk);
  SendWR add = read_from(b, 7, 800'000);
  add.op = SendOp::kFetchAdd;
  add.swap_or_add = 5;
  EXPECT_EQ(a.post(add, {a.sge(700'000, 8)}), PostError::kOk);
  EXPECT_EQ(a.post(send(8), {}), PostError::kOk);
  SendWR immediate = write_to(b, 9, 90'000);
  immediate.op = SendOp::kRDMAWriteWithImmediate;
  immediate.immediate = 0x01020304;
  EXPECT_EQ(a.post(immediate, {a.sge(90'000, 6000)}), PostError::kOk);
  EXPECT_EQ(b.post(write_to(a, 21, 900'000), {b.sge(900'000, 40'000)}), PostError::kOk);
  EXPECT_EQ(b.post(send(22), {b.sge(880'000, 15'000)}), PostError::kOk);
  EXPECT_EQ(b.post(read_from(a, 23, 3), {b.sge(960'000, 8192)}), PostError::kOk);
}

constexpr StreamAgreement kEverything{
    .atomics_and_immediate = true, .ird = 2, .ord = 2, .segment_bytes = 1448};

void expect_all_done(const Pair& pair) {
  const End& a = pair.a;
  const End& b = pair.b;
  using enum WQEStatus;
  EXPECT_EQ(outcomes(a.sent), (std::vector<std::pair<u64, WQEStatus>>{{1, kSuccess},
                                                                      {2, kSuccess},
                                                                      {3, kSuccess},
                                                                      {4, kSuccess},
                                                                      {5, kSuccess},
                                                                      {6, kSuccess},
                                                                      {7, kSuccess},
                                                                      {8, kSuccess},
                                                                      {9, kSuccess}}));
  EXPECT_EQ(outcomes(b.sent), (std::vector<std::pair<u64, WQEStatus>>{
                                  {21, kSuccess}, {22, kSuccess}, {23, kSuccess}}));
  ASSERT_EQ(b.received.size(), 4u);
  EXPECT_EQ(b.received[0].byte_length, 9000u);
  EXPECT_FALSE(b.received[0].solicited);
  EXPECT_EQ(b.received[1].byte_length, 77u);
  EXPECT_TRUE(b.received[1].solicited);
  EXPECT_EQ(b.received[2].byte_length, 0u);
  EXPECT_EQ(b.received[3].op, CompletionOp::kReceiveRDMAWithImmediate);
  EXPECT_EQ(b.received[3].byte_length, 6000u);
  EXPECT_EQ(b.received[3].immediate, 0x01020304u);
  EXPECT_TRUE(same(a, 0, b, 0, 1));
  EXPECT_TRUE(same(a, 10'000, b, 10'000, 70'001));
  EXPECT_TRUE(same(a, 200'000, b, 80'001, 3));
  EXPECT_TRUE(same(a, 300'000, b, 500'000, 3000));
  EXPECT_TRUE(same(a, 303'000, b, 504'000, 6000));
  EXPECT_TRUE(same(b, 150'000, a, 600'000, 5000));
  EXPECT_TRUE(same(b, 155'000, a, 610'000, 33'000));
  EXPECT_TRUE(same(a, 1, b, 520'000, 77));
  EXPECT_TRUE(same(a, 90'000, b, 90'000, 6000));
  EXPECT_TRUE(same(b, 900'000, a, 900'000, 40'000));
  EXPECT_TRUE(same(b, 880'000, a, 500'000, 15'000));
  EXPECT_TRUE(same(a, 3, b, 960'000, 8192));
  EXPECT_TRUE(a.events.empty());
  EXPECT_TRUE(b.events.empty());
}

TEST(IWARPEngine, AllOperationsBothWays) {
  Pair pair;
  pair.begin(kEverything);
  post_all(pair);
  pair.run();
  expect_all_done(pair);
}

TEST(IWARPEngine, WithoutCRCTheFieldIsThere) {
  Pair pair;
  StreamAgreement agreement = kEverything;
  agreement.crc = false;
  pair.begin(agreement);
  post_all(pair);
  pair.run();
  expect_all_done(pair);
}

// Which bytes travel does not depend on how they are cut where nothing is answered, nor what
// becomes of them in any case.
TEST(IWARPEngine, MarkersStandInEachDirectionThatAsksForThem) {
  for (const u32 markers : {1u, 2u, 3u})
    for (const bool crc : {false, true}) {
      Pair pair;
      StreamAgreement of_a = kEverything, of_b = kEverything;
      of_a.crc = of_b.crc = crc;
      of_a.sends_markers = of_b.receives_markers = (markers & 1) != 0;
      of_b.sends_markers = of_a.receives_markers = (markers & 2) != 0;
      pair.a.begin(of_a);
      pair.b.begin(of_b);
      post_all(pair);
      pair.run();
      expect_all_done(pair);
      const auto is_marker = [](const std::vector<u8>& stream, std::size_t at) {
        return stream[at] == 0 && stream[at + 1] == 0 && stream[at + 3] % 4 == 0;
      };
      for (std::size_t at = 0; of_a.sends_markers && at < pair.a_to_b.size(); at += 512)
        EXPECT_TRUE(is_marker(pair.a_to_b, at)) << at;
    }
}

// One end takes part, and the other does not.
TEST(IWARPEngine, AMarkerWhereNoneBelongsEndsTheStream) {
  for (const bool sends : {false, true}) {
    Pair pair;
    StreamAgreement of_a = kEverything, of_b = kEverything;
    (sends ? of_a.sends_markers : of_b.receives_markers) = true;
    pair.a.begin(of_a);
    pair.b.begin(of_b);
    fill(pair.a.buffer, 1);
    EXPECT_EQ(pair.a.post(write_to(pair.b, 1, 0), {pair.a.sge(0, 100'000)}), PostError::kOk);
    pair.run();
    const std::optional<TerminateReason> reason = pair.b.engine->sent_terminate();
    ASSERT_TRUE(reason.has_value()) << sends;
    EXPECT_EQ(reason->layer, layer::kMPA);
    EXPECT_TRUE(reason == reason::kBadLength || reason == reason::kBadCRC);
    EXPECT_TRUE(std::ranges::all_of(pair.b.buffer, [](u8 byte) { return byte == 0; }));
  }
}

class IWARPCutting : public ::testing::TestWithParam<u64> {};

TEST_P(IWARPCutting, GivesTheSameResult) {
  for (const u32 longest : {1u, 7u, 600u, 5000u, 100'000u})
    for (const u32 segment : {128u, 1448u, 8948u, 65'483u}) {
      if (longest == 1 && segment != 1448) continue;
      Pair pair({.seed = GetParam(), .longest = longest, .in_place = GetParam() % 2 == 0});
      StreamAgreement agreement = kEverything;
      agreement.sends_markers = agreement.receives_markers = GetParam() % 3 == 0;
      agreement.segment_bytes = segment;
      pair.begin(agreement);
      post_all(pair);
      pair.run();
      expect_all_done(pair);
      if (HasFailure()) FAIL() << "longest piece " << longest << ", segment " << segment;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IWARPCutting, ::testing::Range<u64>(1, 7));

TEST(IWARPEngine, SendsTheSameBytesHoweverTheSocketTakesThem) {
  std::vector<u8> expected;
  for (u64 seed = 0; seed < 8; ++seed) {
    Pair pair(seed == 0 ? Cutting{} : Cutting{.seed = seed, .longest = 3000});
    pair.begin();
    fill(pair.a.buffer, 3);
    EXPECT_EQ(pair.a.post(write_to(pair.b, 1, 0), {pair.a.sge(0, 100'000)}), PostError::kOk);
    EXPECT_EQ(pair.a.post(write_to(pair.b, 2, 0), {pair.a.sge(0, 10)}), PostError::kOk);
    pair.run();
    if (seed == 0) expected = pair.a_to_b;
    EXPECT_EQ(pair.a_to_b, expected) << seed;
    EXPECT_EQ(pair.a_to_b.size(), write_bytes(100'000, 1448) + write_bytes(10, 1448));
  }
}

// The simulator counts bytes by wire/iwarp/framing.h.
TEST(IWARPEngine, SendsAsManyBytesAsTheSimulatorCounts) {
  for (const u32 segment : {128u, 536u, 1448u, 1460u, 8948u})
    for (const u32 length : {0u, 1u, 41u, 1425u, 1426u, 1427u, 8927u, 8928u, 8929u, 100'000u}) {
      Pair pair;
      StreamAgreement agreement = kEverything;
      agreement.segment_bytes = segment;
      pair.begin(agreement);
      pair.b.post_receive(1, {});
      SendWR wr = write_to(pair.b, 1, 0);
      wr.op = SendOp::kRDMAWriteWithImmediate;
      EXPECT_EQ(pair.a.post(wr, {pair.a.sge(0, length)}), PostError::kOk);
      pair.run();
      EXPECT_EQ(pair.a_to_b.size(), write_bytes(length, segment) + kImmediateBytes)
          << segment << " " << length;
    }
}

// One element of the system call, whatever the number of messages.
TEST(IWARPEngine, AListOfShortMessagesIsOnePieceOfMemory) {
  Pair pair;
  pair.begin();
  fill(pair.a.buffer, 1);
  for (u64 id = 0; id < 64; ++id)
    ASSERT_EQ(pair.a.post(write_to(pair.b, id, id * 64), {pair.a.sge(id * 64, 64)}),
              PostError::kOk);
  StreamGather gather;
  pair.a.engine->gather(gather, kNow);
  EXPECT_EQ(gather.bytes(), 64 * fpdu_bytes(kTaggedHeader + 64));
  EXPECT_EQ(gather.pieces().size(), 1u);
  pair.run();
  EXPECT_TRUE(same(pair.a, 0, pair.b, 0, 64 * 64));
}

// A card reads each byte once, so that its CRC fits whatever it has read.
TEST(IWARPEngine, TheCRCFitsPayloadThatChangesWhileItIsSent) {
  Pair pair;
  pair.begin();
  fill(pair.a.buffer, 1);
  const std::vector<u8> before = pair.a.buffer;
  ASSERT_EQ(pair.a.post(write_to(pair.b, 1, 0), {pair.a.sge(0, 100'000)}), PostError::kOk);
  StreamGather gather;
  pair.a.engine->gather(gather, kNow);
  fill(pair.a.buffer, 2);
  gather.visit_range(0, gather.bytes(), [&](Bytes bytes) { pair.b.take(bytes); });
  pair.a.engine->on_sent(gather, gather.bytes(), kNow);
  pair.run();
  EXPECT_TRUE(pair.b.events.empty());
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 100'000, pair.b.buffer.begin()));
}

// The rest of an FPDU that is sent in part still goes out when the QP is moved to Error.
TEST(IWARPEngine, EndsASegmentThatIsBegun) {
  Pair pair;
  pair.begin();
  fill(pair.a.buffer, 3);
  EXPECT_EQ(pair.a.post(write_to(pair.b, 1, 0), {pair.a.sge(0, 5000)}), PostError::kOk);
  StreamGather gather;
  pair.a.engine->gather(gather, kNow);
  pair.a.engine->on_sent(gather, 100, kNow);
  std::vector<u8> wire;
  const auto log = [&wire](Bytes b) { wire.insert(wire.end(), b.begin(), b.end()); };
  gather.visit_range(0, 100, log);
  pair.a.to(QPState::kError);
  pair.a.drain();
  EXPECT_EQ(outcomes(pair.a.sent),
            (std::vector<std::pair<u64, WQEStatus>>{{1, WQEStatus::kFlushed}}));
  EXPECT_FALSE(pair.a.engine->wants_end());
  gather.clear();
  pair.a.engine->gather(gather, kNow);
  gather.visit_range(0, gather.bytes(), log);
  pair.a.engine->on_sent(gather, gather.bytes(), kNow);
  EXPECT_EQ(wire.size(), 1448u);
  EXPECT_TRUE(pair.a.engine->wants_end());
  pair.b.take(wire);
  EXPECT_TRUE(pair.b.events.empty());
  EXPECT_TRUE(same(pair.a, 0, pair.b, 0, 1428));
  pair.b.engine->on_end(StreamEnd::kFinished, kNow);
  pair.b.drain();
  EXPECT_EQ(pair.b.events, std::vector{EngineEvent::kEnded});
}

TEST(IWARPEngine, ReadsWaitForTheDepthThatIsAgreedOn) {
  Pair pair;
  pair.begin({.ird = 2, .ord = 2});
  for (u64 id = 0; id < 5; ++id)
    EXPECT_EQ(pair.a.post(read_from(pair.b, id, 0), {pair.a.sge(id * 100, 100)}), PostError::kOk);
  StreamGather gather;
  pair.a.engine->gather(gather, kNow);
  EXPECT_EQ(gather.bytes(), 2u * fpdu_bytes(kUntaggedHeader + RDMAPReadRequest::kSize));
  pair.run();
  EXPECT_EQ(pair.a.sent.size(), 5u);
}

TEST(IWARPEngine, AFencedRequestWaitsForREADs) {
  Pair pair;
  pair.begin();
  pair.b.post_receive(1, {pair.b.sge(0, 10)});
  EXPECT_EQ(pair.a.post(read_from(pair.b, 1, 0), {pair.a.sge(0, 10)}), PostError::kOk);
  SendWR fenced = send(2);
  fenced.fence = true;
  EXPECT_EQ(pair.a.post(fenced, {pair.a.sge(0, 10)}), PostError::kOk);
  StreamGather gather;
  pair.a.engine->gather(gather, kNow);
  EXPECT_EQ(gather.bytes(), fpdu_bytes(kUntaggedHeader + RDMAPReadRequest::kSize));
  pair.run();
  EXPECT_EQ(pair.a.sent.size(), 2u);
}

TEST(IWARPEngine, TheResponderSaysNothingBeforeTheInitiatorIsReady) {
  for (const ReadyToReceive how : {ReadyToReceive::kWrite, ReadyToReceive::kRead}) {
    Pair pair;
    pair.a.begin({.to_send = how, .ird = 4, .ord = 4});
    pair.b.begin({.awaits_ready = true, .ird = 4, .ord = 4});
    pair.a.post_receive(1, {pair.a.sge(0, 10)});
    EXPECT_EQ(pair.b.post(send(2), {pair.b.sge(0, 10)}), PostError::kOk);
    EXPECT_EQ(pair.a.post(read_from(pair.b, 3, 0), {pair.a.sge(50, 10)}), PostError::kOk);
    StreamGather gather;
    pair.b.engine->gather(gather, kNow);
    EXPECT_TRUE(gather.empty());
    pair.run();
    EXPECT_EQ(pair.b.sent.size(), 1u);
    EXPECT_EQ(pair.a.received.size(), 1u);
    EXPECT_EQ(outcomes(pair.a.sent),
              (std::vector<std::pair<u64, WQEStatus>>{{3, WQEStatus::kSuccess}}));
  }
}

// An initiator that offers no message of its own may wait for ours.
TEST(IWARPEngine, TheResponderWaitsForTheInitiatorForAWhile) {
  Pair pair;
  pair.a.begin({.ird = 4, .ord = 4});
  pair.b.begin({.awaits_ready = true, .ready_patience = ms(100), .ird = 4, .ord = 4});
  pair.a.post_receive(1, {pair.a.sge(0, 10)});
  EXPECT_EQ(pair.b.post(send(2), {pair.b.sge(0, 10)}), PostError::kOk);
  StreamGather gather;
  pair.b.engine->gather(gather, kNow);
  EXPECT_TRUE(gather.empty());
  EXPECT_EQ(pair.b.engine->next_timer(), kNow + ms(100));
  pair.b.engine->on_timer(kNow + ms(99));
  pair.b.engine->gather(gather, kNow);
  EXPECT_TRUE(gather.empty());
  pair.b.engine->on_timer(kNow + ms(100));
  EXPECT_EQ(pair.b.engine->next_timer(), Time::never());
  pair.run();
  EXPECT_EQ(pair.a.received.size(), 1u);
}

TEST(IWARPEngine, RefusesWhatItDoesNotHave) {
  Pair pair;
  pair.begin();
  SendWR wr = send(1);
  for (const SendOp op : {SendOp::kSendWithImmediate, SendOp::kFlush, SendOp::kAtomicWrite,
                          SendOp::kFetchAdd, SendOp::kRDMAWriteWithImmediate}) {
    wr.op = op;
    EXPECT_EQ(pair.a.post(wr, {}), PostError::kBadOpcode);
  }
}

TEST(IWARPEngine, DrainsBeforeItSaysSo) {
  Pair pair;
  pair.begin();
  EXPECT_EQ(pair.a.post(read_from(pair.b, 1, 0), {pair.a.sge(0, 10)}), PostError::kOk);
  pair.run();
  pair.a.to(QPState::kSQD);
  EXPECT_EQ(pair.a.post(read_from(pair.b, 2, 0), {pair.a.sge(0, 10)}), PostError::kOk);
  pair.run();
  EXPECT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.a.events, std::vector{EngineEvent::kSQDrained});
  pair.a.to(QPState::kRTS);
  pair.run();
  EXPECT_EQ(pair.a.sent.size(), 2u);
}

}  // namespace
}  // namespace verbena::iwarp
