// iWARP on memory whose copies end late and out of order, from a seed: two devices and the streams
// between them, which are cut anywhere. All requests complete once, in order; memory is as a plain
// model says, at each completion that promises it.
#include <gtest/gtest.h>

#include <deque>

#include "device/qp/streams.h"
#include "tests/sim/arena.h"
#include "tests/sim/seeds.h"

namespace verbena::sim {
namespace {

constexpr u32 kDepth = 32;
constexpr AccessFlags kRights = Access::kLocalWrite | Access::kRemoteWrite |
                                AccessFlags(Access::kRemoteRead) | Access::kRemoteAtomic;

DeviceConfig iwarp_device(u64 seed) {
  DeviceConfig config;
  config.transport = Transport::kIWARP;
  config.gids = {{GID{}}};
  config.seed = seed;
  return config;
}

struct StreamHost {
  explicit StreamHost(PRNG& prng)
      : device(iwarp_device(prng.next())),
        pd(*device.alloc_pd()),
        arena(device, pd, 0x10'0000, prng.fork()) {
    arena.use_late_memory();
    cq = *device.create_cq(8 * kDepth, nullptr);
  }
  QueuePair* make_qp() {
    QueuePair* const qp = *device.create_qp({.pd = pd,
                                             .send_cq = cq,
                                             .receive_cq = cq,
                                             .send = {.depth = kDepth, .max_sge = 3},
                                             .receive = {.depth = kDepth, .max_sge = 3}});
    QPModify to_init;
    to_init.state = QPState::kInit;
    to_init.remote_access = kRights;
    to_init.set(QPField::kState).set(QPField::kAccessFlags);
    CHECK(device.modify_qp(qp, to_init, Time()) == Status::kOk);
    StreamOpening opening{.agreement = {.ird = 4, .ord = 4}, .local = {}, .remote = {}};
    opening.agreement.atomics_and_immediate = true;
    CHECK(device.streams().open(*qp, opening, Time()).has_value());
    return qp;
  }

  Device device;
  ProtectionDomain* pd;
  CompletionQueue* cq;
  Arena arena;
};

// One direction of a stream. It holds a bounded number of bytes, as a socket's buffers do.
struct StreamWire {
  static constexpr std::size_t kMost = 100'000;
  StreamHost& from;
  QueuePair* from_qp;
  StreamHost& to;
  QueuePair* to_qp;
  std::deque<u8> bytes{};
};

class IWARPLateMemory : public ::testing::TestWithParam<u64> {
 protected:
  void join() {
    QueuePair* const at_a = a_.make_qp();
    QueuePair* const at_b = b_.make_qp();
    wires_.push_back({a_, at_a, b_, at_b});
    wires_.push_back({b_, at_b, a_, at_a});
  }
  // Runs until `done`. Returns false if it took too long.
  template <typename Done>
  bool run(Done done) {
    for (u32 step = 0; step < 400'000; ++step) {
      if (done()) return true;
      now_ = now_ + us(prng_.below(4));
      for (StreamHost* const host : {&a_, &b_}) {
        if (host->device.next_timer() <= now_) host->device.on_timer(now_);
        send(*host);
      }
      for (StreamWire& wire : wires_) deliver(wire);
    }
    return false;
  }
  // Returns whether all that was sent has arrived and is placed.
  bool is_idle() const {
    return std::ranges::all_of(wires_, [](const StreamWire& wire) {
      return wire.bytes.empty() && !wire.to_qp->copies.is_waiting();
    });
  }
  void send(StreamHost& host) {
    while (QueuePair* const qp = host.device.streams().poll(now_)) {
      const auto wire = std::ranges::find(wires_, qp, &StreamWire::from_qp);
      gather_.clear();
      host.device.streams().gather(*qp, gather_, now_);
      if (gather_.empty()) continue;
      const u64 room = StreamWire::kMost - wire->bytes.size();
      const u32 bytes =
          static_cast<u32>(std::min<u64>(room, prng_.in(0, std::min(gather_.bytes(), 90'000u))));
      gather_.visit_range(0, bytes, [wire](Bytes part) {
        wire->bytes.insert(wire->bytes.end(), part.begin(), part.end());
      });
      host.device.streams().on_sent(*qp, gather_, bytes, now_);
      if (bytes == gather_.bytes()) continue;
      host.device.pause(qp);
      full_.push_back({&host, qp});
      return;
    }
  }
  void deliver(StreamWire& wire) {
    if (!wire.to.device.streams().takes_bytes(*wire.to_qp)) {
      ++paused_;
      return;
    }
    std::vector<u8> piece(prng_.below(wire.bytes.size() + 1));
    std::copy_n(wire.bytes.begin(), piece.size(), piece.begin());
    wire.bytes.erase(wire.bytes.begin(),
                     wire.bytes.begin() + static_cast<std::ptrdiff_t>(piece.size()));
    if (!piece.empty()) wire.to.device.streams().on_bytes(*wire.to_qp, piece, now_);
    for (const auto& [host, qp] : std::exchange(full_, {})) host->device.resume(qp);
  }
  SGE sge(StreamHost& host, u64 offset, u64 length) {
    const MRKeys keys = host.arena.open(offset, length, kRights);
    r_key_ = keys.r_key;
    return {host.arena.address(offset), static_cast<u32>(length), keys.l_key};
  }

  PRNG prng_{GetParam()};
  StreamHost a_{prng_}, b_{prng_};
  std::vector<StreamWire> wires_;
  std::vector<std::pair<StreamHost*, QueuePair*>> full_;
  StreamGather gather_;
  Time now_ = Time::from_ns(1);
  RKey r_key_;  // of the last sge()
  u32 paused_ = 0;
};

// The work of one host towards the other: every operation, each with memory of its own, and a READ
// behind each WRITE of what it has written.
struct StreamWork {
  enum class Kind : u8 { kWrite, kRead, kSend, kAdd, kSwap, kReadBack };
  struct Step {
    Kind kind;
    u64 here, there, length;
  };
  StreamWork(StreamHost& local_host, StreamHost& remote_host, PRNG& prng)
      : local(local_host), remote(remote_host) {
    counter = remote.arena.carve(8);
    while (steps.size() < kDepth) add(prng);
  }
  void add(PRNG& prng) {
    const Kind kind = static_cast<Kind>(prng.below(5));
    const bool is_atomic = kind == Kind::kAdd || kind == Kind::kSwap;
    const u64 length = is_atomic ? 8 : prng.chance(0.3) ? prng.in(1, 100) : prng.in(1, 70'000);
    steps.push_back({kind, local.arena.carve(length),
                     is_atomic ? counter : remote.arena.carve(length), length});
    if (kind != Kind::kWrite || steps.size() == kDepth) return;
    steps.push_back({Kind::kReadBack, local.arena.carve(length), steps.back().there, length});
  }

  StreamHost &local, &remote;
  std::vector<Step> steps;
  u64 counter;
};

TEST_P(IWARPLateMemory, EveryOperationCompletesOnceInOrder) {
  join();
  std::array<StreamWork, 2> works = {StreamWork(a_, b_, prng_), StreamWork(b_, a_, prng_)};
  a_.arena.seal();
  b_.arena.seal();
  using Kind = StreamWork::Kind;
  std::array<u32, 2> sends{};
  for (u32 side = 0; side < 2; ++side) {
    StreamWork& work = works[side];
    QueuePair* const qp = wires_[side].from_qp;
    const SGE counter = sge(work.remote, work.counter, 8);
    const RKey counter_key = r_key_;
    for (u64 i = 0; i < kDepth; ++i) {
      const StreamWork::Step& step = work.steps[i];
      const SGE here = sge(work.local, step.here, step.length);
      SendWR wr;
      wr.wr_id = i;
      wr.signaled = true;
      wr.sg_list = {&here, 1};
      SGE there = counter;
      if (step.there != work.counter) there = sge(work.remote, step.there, step.length);
      wr.remote_address = there.address;
      wr.r_key = step.there == work.counter ? counter_key : r_key_;
      wr.op = step.kind == Kind::kWrite  ? SendOp::kRDMAWrite
              : step.kind == Kind::kSend ? SendOp::kSend
              : step.kind == Kind::kAdd  ? SendOp::kFetchAdd
              : step.kind == Kind::kSwap ? SendOp::kCompareSwap
                                         : SendOp::kRDMARead;
      Arena &local = work.local.arena, &remote = work.remote.arena;
      if (step.kind == Kind::kAdd || step.kind == Kind::kSwap) {
        const u64 before = remote.expected_word(work.counter);
        wr.compare = before;
        wr.swap_or_add = prng_.next();
        local.expect_word(step.here, before);
        remote.expect_word(work.counter,
                           step.kind == Kind::kAdd ? before + wr.swap_or_add : wr.swap_or_add);
      } else if (wr.op == SendOp::kRDMARead) {
        local.expect(step.here, remote.expected(step.there, step.length));
      } else {
        remote.expect(step.there, local.expected(step.here, step.length));
      }
      if (step.kind == Kind::kSend) {
        ++sends[side];
        ASSERT_EQ(work.remote.device.post_receive(
                      wires_[side].to_qp, {.wr_id = 1000 + i, .sg_list = {&there, 1}}, now_),
                  PostError::kOk);
      }
      ASSERT_EQ(work.local.device.post_send(qp, wr, now_), PostError::kOk);
    }
  }
  std::array<std::vector<u64>, 2> sent, received;
  const auto poll = [&] {
    for (u32 side = 0; side < 2; ++side) {
      StreamWork& work = works[side];
      std::vector<CQE> cqes(16);
      cqes.resize(work.local.device.poll_cq(work.local.cq, cqes));
      for (const CQE& cqe : cqes) {
        EXPECT_EQ(cqe.status, WQEStatus::kSuccess);
        const bool is_receive = cqe.wr_id >= 1000;
        (is_receive ? received : sent)[side].push_back(cqe.wr_id);
        const StreamWork& of = works[is_receive ? 1 - side : side];
        const u64 index = cqe.wr_id % 1000;
        // A receive, and the answer of a READ, show that all WRITEs before are there.
        for (u64 i = 0; i <= index; ++i) {
          const StreamWork::Step& step = of.steps[i];
          const Kind kind = of.steps[index].kind;
          if (step.kind != Kind::kWrite || kind == Kind::kWrite) continue;
          if (kind == Kind::kSend && !is_receive) continue;
          const Arena& arena = of.remote.arena;
          EXPECT_TRUE(std::ranges::equal(arena.actual(step.there, step.length),
                                         arena.expected(step.there, step.length)));
        }
      }
    }
    return sent[0].size() == kDepth && sent[1].size() == kDepth && received[0].size() == sends[1] &&
           received[1].size() == sends[0];
  };
  ASSERT_TRUE(run(poll)) << "seed " << GetParam();
  // A WRITE is complete when its bytes are with TCP.
  ASSERT_TRUE(run([this] { return is_idle(); })) << "seed " << GetParam();
  for (u32 side = 0; side < 2; ++side) {
    EXPECT_TRUE(std::ranges::is_sorted(sent[side]));
    EXPECT_TRUE(std::ranges::is_sorted(received[side]));
  }
  a_.arena.close();
  b_.arena.close();
  EXPECT_EQ(a_.arena.difference(), std::nullopt);
  EXPECT_EQ(b_.arena.difference(), std::nullopt);
}

// --- memory that the test holds

class IWARPHeldMemory : public IWARPLateMemory {
 protected:
  static constexpr u64 kBytes = 4 << 20;
  // Ends the jobs that are left, of memory that the test no longer has: that frees what they use.
  void TearDown() override {
    for (const auto& memory : held_) {
      memory->is_gone = true;
      memory->finish();
    }
  }
  std::shared_ptr<test::LateMemory> hold(std::vector<u8>& bytes) {
    return held_.emplace_back(std::make_shared<test::LateMemory>(bytes, prng_.fork()));
  }
  // Registers far memory at host b.
  MRKeys open(std::shared_ptr<test::LateMemory> memory) {
    return *b_.device.memory().register_far(b_.pd->id, std::move(memory), 0, kBytes, 0, kRights);
  }
  MRKeys open_plain(StreamHost& host, std::vector<u8>& bytes) {
    return *host.device.memory().register_mr(host.pd->id, bytes.data(), bytes.size(), 0, kRights);
  }
  void write(QueuePair* qp, u64 wr_id, const SGE& from, RKey to) {
    SendWR wr;
    wr.wr_id = wr_id;
    wr.op = SendOp::kRDMAWrite;
    wr.signaled = true;
    wr.sg_list = {&from, 1};
    wr.r_key = to;
    ASSERT_EQ(a_.device.post_send(qp, wr, now_), PostError::kOk);
  }
  void read(QueuePair* qp, u64 wr_id, const SGE& to, RKey from) {
    SendWR wr;
    wr.wr_id = wr_id;
    wr.op = SendOp::kRDMARead;
    wr.signaled = true;
    wr.sg_list = {&to, 1};
    wr.r_key = from;
    ASSERT_EQ(a_.device.post_send(qp, wr, now_), PostError::kOk);
  }
  bool poll_one(CQE& out) { return a_.device.poll_cq(a_.cq, {&out, 1}) == 1; }

 private:
  std::vector<std::shared_ptr<test::LateMemory>> held_;
};

TEST_P(IWARPHeldMemory, AQPWhoseCopiesWaitHoldsUpNoOther) {
  join();
  join();
  std::vector<u8> from(kBytes, 7), slow(kBytes), fast(kBytes);
  const auto late = hold(slow);
  late->is_stuck = true;
  const MRKeys source = open_plain(a_, from), to_slow = open(late), to_fast = open_plain(b_, fast);
  const SGE all{0, kBytes, source.l_key};
  write(wires_[0].from_qp, 1, all, to_slow.r_key);
  write(wires_[2].from_qp, 2, all, to_fast.r_key);
  const SGE word{0, 8, source.l_key};
  read(wires_[2].from_qp, 3, word, to_fast.r_key);
  std::vector<u64> ids;
  const auto has = [&](u64 id) {
    for (CQE cqe; poll_one(cqe);) ids.push_back(cqe.wr_id);
    return std::ranges::find(ids, id) != ids.end();
  };
  ASSERT_TRUE(run([&] { return has(3) && paused_ > 100; }));
  EXPECT_EQ(fast, from);
  EXPECT_FALSE(has(1));  // its peer takes no more bytes than it can copy
  EXPECT_LE(late->waiting(), CopyLane::kMaxWrites);
  late->is_stuck = false;
  read(wires_[0].from_qp, 4, word, to_slow.r_key);
  ASSERT_TRUE(run([&] { return has(4); }));
  EXPECT_EQ(slow, from);
}

TEST_P(IWARPHeldMemory, MemoryThatEndsIsARemoteAccessError) {
  for (const bool reads : {false, true}) {
    join();
    const StreamWire& wire = wires_[wires_.size() - 2];
    std::vector<u8> from(kBytes), far(kBytes);
    const auto late = hold(far);
    late->is_gone = true;
    const MRKeys source = open_plain(a_, from), to = open(late);
    if (reads)
      read(wire.from_qp, 1, {0, 100'000, source.l_key}, to.r_key);
    else
      write(wire.from_qp, 1, {0, 100'000, source.l_key}, to.r_key);
    ASSERT_TRUE(run([&] {
      return a_.device.attributes_of(wire.from_qp).state == QPState::kError &&
             b_.device.attributes_of(wire.to_qp).state == QPState::kError;
    }));
    const auto reason = wire.from_qp->stream->received_terminate();
    ASSERT_TRUE(reason.has_value());
    EXPECT_EQ(*reason, (TerminateReason{.layer = 0, .type = 2, .code = 7}));
    const ResponderFault& fault = b_.device.fault_of(wire.to_qp).responder;
    EXPECT_EQ(fault.refusal, Refusal::kRemoteMemory);
    EXPECT_EQ(fault.memory, MemoryFault::kGone);
    EXPECT_EQ(fault.r_key, to.r_key);
  }
}

TEST_P(IWARPHeldMemory, OwnMemoryThatEndsIsALocalProtectionError) {
  for (const bool reads : {false, true}) {
    join();
    std::vector<u8> far(kBytes), there(kBytes);
    const auto late = hold(far);
    late->is_gone = true;
    const MRKeys mine = *a_.device.memory().register_far(a_.pd->id, late, 0, kBytes, 0, kRights);
    const MRKeys theirs = open_plain(b_, there);
    QueuePair* const qp = wires_[wires_.size() - 2].from_qp;
    const SGE sge{0, 50'000, mine.l_key};
    if (reads)
      read(qp, 1, sge, theirs.r_key);
    else
      write(qp, 1, sge, theirs.r_key);
    CQE cqe;
    ASSERT_TRUE(run([&] { return poll_one(cqe); }));
    EXPECT_EQ(cqe.status, WQEStatus::kLocalProtection);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IWARPLateMemory, ::testing::ValuesIn(seeds(8)), seed_name);
INSTANTIATE_TEST_SUITE_P(Seeds, IWARPHeldMemory, ::testing::ValuesIn(seeds(100)), seed_name);

}  // namespace
}  // namespace verbena::sim
