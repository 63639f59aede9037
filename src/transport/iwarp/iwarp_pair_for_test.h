// Two iWARP engines and the stream between them, for tests. The bytes are cut into pieces as a
// seed says, on their way out and in.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"
#include "transport/iwarp/engine.h"

namespace verbena::iwarp::test {

inline constexpr PDId kPD{1};
inline constexpr u64 kIova = 0x10'0000'0000;
inline constexpr Time kNow = Time::from_ns(1);
inline constexpr AccessFlags kAllRights = Access::kLocalWrite | Access::kRemoteWrite |
                                          AccessFlags(Access::kRemoteRead) | Access::kRemoteAtomic;

struct EndOptions {
  u64 memory_bytes = 1 << 20;
  AccessFlags access = kAllRights, qp_access = kAllRights;
  SendQueueLimits sends{.depth = 64, .max_sge = 4, .max_inline_bytes = 128};
  ReceiveQueueLimits receives{.depth = 64, .max_sge = 4};
  PeerMemoryFinder* peers = nullptr;  // the short cut
  LocalProgress* progress = nullptr;
  CopyLane* send_copies = nullptr;
  CopyLane* receive_copies = nullptr;
};

class End {
 public:
  explicit End(QPN qpn, const EndOptions& options = {})
      : receives(options.receives),
        buffer(options.memory_bytes),
        keys(memory.register_mr(kPD, buffer.data(), buffer.size(), kIova, options.access).value()) {
    qp.qpn = qpn;
    qp.pd = kPD;
    qp.state = QPState::kInit;
    qp.remote_access = options.qp_access;
    engine = std::make_unique<IWARPEngine>(EngineParts{.attributes = qp,
                                                       .memory = memory,
                                                       .receive_queue = receives,
                                                       .send_limits = options.sends,
                                                       .peers = options.peers,
                                                       .local_progress = options.progress,
                                                       .send_copies = options.send_copies,
                                                       .receive_copies = options.receive_copies},
                                           IWARPLimits{});
  }
  void begin(const StreamAgreement& agreement) {
    qp.max_rd_atomic = static_cast<u8>(agreement.ord);
    engine->begin(agreement, kNow);
    to(QPState::kRTS);
  }
  void to(QPState state) {
    const QPState from = qp.state;
    qp.state = state;
    engine->on_state(from, kNow);
  }
  SGE sge(u64 offset, u64 length) const {
    return {kIova + offset, static_cast<u32>(length), keys.l_key};
  }
  PostError post(SendWR wr, const std::vector<SGE>& list) {
    wr.sg_list = list;
    wr.signaled = true;
    return engine->post_send(wr, kNow);
  }
  void post_receive(u64 wr_id, const std::vector<SGE>& list) {
    CHECK(receives.push({.wr_id = wr_id, .sg_list = list}) == PostError::kOk);
  }
  // Does the steps of the device after each input.
  void drain() {
    for (CQE cqe; engine->poll_send_cqe(cqe); engine->free_sends(cqe.entries)) sent.push_back(cqe);
    for (CQE cqe; engine->poll_receive_cqe(cqe); receives.free_entries(cqe.entries))
      received.push_back(cqe);
    bool fails = false;
    while (const std::optional<EngineEvent> event = engine->poll_event()) {
      events.push_back(*event);
      fails |= *event == EngineEvent::kFatal || *event == EngineEvent::kEnded;
    }
    if (!fails || qp.state == QPState::kError) return;
    to(QPState::kError);
    drain();
  }
  void take(Bytes bytes) {
    while (!bytes.empty()) {
      bytes = engine->on_bytes(bytes, kNow);
      drain();
    }
  }

  QPAttributes qp;
  ProtectionTable memory{64, PRNG(1)};
  ReceiveQueue receives;
  std::vector<u8> buffer;
  MRKeys keys;
  std::unique_ptr<IWARPEngine> engine;
  std::vector<CQE> sent, received;
  std::vector<EngineEvent> events;
};

// Cutting: the sizes of the pieces into which bytes are cut.
struct Cutting {
  u64 seed = 1;
  u32 longest = ~0u;     // piece
  bool in_place = true;  // direct_place() is used
};

class Pair {
 public:
  explicit Pair(const Cutting& cutting = {}, const EndOptions& a_options = {},
                const EndOptions& b_options = {})
      : a(QPN{0x11}, a_options), b(QPN{0x12}, b_options), cutting_(cutting), prng_(cutting.seed) {}

  void begin(const StreamAgreement& agreement = {.ird = 4, .ord = 4}) {
    a.begin(agreement);
    b.begin(agreement);
  }
  // Until neither has anything to say.
  void run() {
    while (step(a, b, a_to_b) | step(b, a, b_to_a)) {
    }
  }
  // The bytes that were sent, in order.
  std::vector<u8> a_to_b, b_to_a;
  End a, b;

 private:
  static constexpr u32 kPiecesSent = 20;  // at once, at most
  u32 cut(std::size_t bytes, u64 longest) {
    const u64 most = std::min<u64>(bytes, longest);
    return static_cast<u32>(cutting_.longest == ~0u ? most : 1 + prng_.below(most));
  }
  bool step(End& from, End& to, std::vector<u8>& log) {
    gather_.clear();
    const bool may_send = from.engine->outputs().packet;
    from.engine->gather(gather_, kNow);
    EXPECT_TRUE(may_send || gather_.empty());
    if (gather_.empty()) {
      from.drain();
      return false;
    }
    const u32 bytes = cut(gather_.bytes(), u64{cutting_.longest} * kPiecesSent);
    std::vector<u8> wire;
    gather_.visit_range(0, bytes,
                        [&wire](Bytes part) { wire.insert(wire.end(), part.begin(), part.end()); });
    from.engine->on_sent(gather_, bytes, kNow);
    from.drain();
    log.insert(log.end(), wire.begin(), wire.end());
    deliver(wire, to);
    return true;
  }
  void deliver(Bytes wire, End& to) {
    while (!wire.empty()) {
      const Bytes piece = wire.first(cut(wire.size(), cutting_.longest));
      wire = wire.subspan(piece.size());
      const MutableBytes place = cutting_.in_place ? to.engine->direct_place() : MutableBytes{};
      const std::size_t direct = std::min(place.size(), piece.size());
      if (direct != 0) {
        std::ranges::copy(piece.first(direct), place.begin());
        to.engine->on_placed(static_cast<u32>(direct), kNow);
      }
      to.take(piece.subspan(direct));
    }
  }

  Cutting cutting_;
  PRNG prng_;
  StreamGather gather_;
};

}  // namespace verbena::iwarp::test
