// Errors on an RC connection, one at a time: both sides get the right status, the rest is flushed,
// no other byte changes, and both QPs serve again after Reset. On a wire that loses frames the
// answer itself may be lost; then the requester must give up by itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/host.h"
#include "tests/sim/seeds.h"
#include "wire/ib/ack_timeout.h"

namespace verbena::sim {
namespace {

constexpr u64 kZoneBytes = 16384;
constexpr u64 kBadWork = 1000;  // wr_id

enum class Error : u8 {
  kWriteBadKey,
  kReadBadKey,
  kAtomicBadKey,
  kWriteOutOfBounds,
  kReadOutOfBounds,
  kWriteWithoutRight,
  kReadWithoutRight,
  kQPForbidsWrites,
  kUnalignedAtomic,
  kReceiveTooSmall,
  kReceiveNotWritable,
  kInvalidateBadKey,
  kBadLocalKey,
  kReadLandsNowhere,
  kBadBind,
  kNoReceive,
  kDeadPeer,
};
constexpr u32 kErrors = static_cast<u32>(Error::kDeadPeer) + 1;

struct Expected {
  WQEStatus requester;
  std::optional<WQEStatus> receive{};     // of the responder's oldest
  std::optional<AsyncEventType> event{};  // at the responder
  bool responder_fails = true;
};

Expected expected_of(Error error) {
  const Expected access = {WQEStatus::kRemoteAccess, {}, AsyncEventType::kQPAccessError};
  const Expected request = {WQEStatus::kRemoteInvalidRequest, {}, AsyncEventType::kQPRequestError};
  switch (error) {
    case Error::kWriteBadKey:
    case Error::kReadBadKey:
    case Error::kAtomicBadKey:
    case Error::kWriteOutOfBounds:
    case Error::kReadOutOfBounds:
    case Error::kWriteWithoutRight:
    case Error::kReadWithoutRight: return access;
    case Error::kQPForbidsWrites:
    case Error::kUnalignedAtomic: return request;
    case Error::kReceiveTooSmall:
      return {WQEStatus::kRemoteInvalidRequest, WQEStatus::kLocalLength};
    case Error::kReceiveNotWritable:
      return {WQEStatus::kRemoteOperational, WQEStatus::kLocalProtection};
    case Error::kInvalidateBadKey: return {WQEStatus::kRemoteAccess, WQEStatus::kLocalAccess};
    case Error::kBadLocalKey:
    case Error::kReadLandsNowhere: return {WQEStatus::kLocalProtection, {}, {}, false};
    case Error::kBadBind: return {WQEStatus::kMWBind, {}, {}, false};
    case Error::kNoReceive: return {WQEStatus::kRNRRetryExceeded, {}, {}, false};
    case Error::kDeadPeer: return {WQEStatus::kRetryExceeded, {}, {}, false};
  }
  CHECK_UNREACHABLE();
}

class Scene {
 public:
  Scene(World& world, Error error, bool lossy)
      : world_(world),
        error_(error),
        lossy_(lossy),
        a_(world, world.add_node({.device = device_config(0, 1, false)}), 0x10000),
        b_(world, world.add_node({.device = device_config(1, 2, false)}), 0x7000000000) {
    LinkConfig link;
    if (lossy) link.faults = {.loss = 0.05, .reorder = 0.02, .duplicate = 0.02, .corrupt = 0.01};
    world.join(a_.node, b_.node, link);
    for (Host* host : {&a_, &b_}) {
      host->create_qp(QPType::kRC, {.depth = 64, .max_sge = 2}, {.depth = 16, .max_sge = 2}, false);
      zone_ = host->arena.carve(kZoneBytes);
      landing_ = host->arena.carve(kZoneBytes);
      host->arena.seal();
    }
    zone_a_ = a_.arena.open(zone_, kZoneBytes, kAll);
    zone_b_ = b_.arena.open(zone_, kZoneBytes, kAll);
    landing_a_ = a_.arena.open(landing_, kZoneBytes, Access::kLocalWrite);
    landing_b_ = b_.arena.open(landing_, kZoneBytes, Access::kLocalWrite);
    connect_both(error == Error::kQPForbidsWrites ? AccessFlags{} : kRemote);
  }

  void play() {
    good_before_ = error_ == Error::kQPForbidsWrites ? 0 : world_.prng().below(5);
    for (u64 i = 0; i < good_before_; ++i) write(i, true);
    post_receives();
    provoke();
    good_after_ = world_.prng().below(5);
    for (u64 i = 0; i < good_after_; ++i) write(kBadWork + 1 + i, false);
    ASSERT_TRUE(world_.run_until_idle(sec(1000)));
    check();
    serve_again();
  }

 private:
  static constexpr AccessFlags kRemote =
      Access::kRemoteRead | Access::kRemoteWrite | AccessFlags(Access::kRemoteAtomic);
  static constexpr AccessFlags kAll = kRemote | Access::kLocalWrite | AccessFlags(Access::kMWBind);

  void connect_both(AccessFlags remote_access) {
    config_.remote_access = remote_access;
    config_.rnr_retry_count = 3;
    config_.psn = PSN(static_cast<u32>(world_.prng().next()));
    connect(a_, a_.qps[0], config_, b_, b_.qps[0], config_);
  }

  SendWR remote(SendOp op, u64 wr_id) const {
    SendWR wr;
    wr.op = op;
    wr.wr_id = wr_id;
    wr.signaled = true;
    wr.remote_address = b_.arena.address(zone_);
    wr.r_key = zone_b_.r_key;
    return wr;
  }
  void post(SendWR wr, const SGE& sge) {
    wr.sg_list = {&sge, 1};
    ASSERT_EQ(a_.node.post_send(a_.qps[0], wr), PostError::kOk);
  }
  SGE local(u64 offset, u32 length) const {
    return {a_.arena.address(zone_ + offset), length, zone_a_.l_key};
  }
  void write(u64 wr_id, bool has_effect) {
    const u32 length = static_cast<u32>(world_.prng().in(1, 4000));
    const u64 from = world_.prng().below(kZoneBytes - length);
    const u64 to = world_.prng().below(kZoneBytes - length);
    SendWR wr = remote(SendOp::kRDMAWrite, wr_id);
    wr.remote_address += to;
    wr.fence = true;  // a WRITE behind a READ that fails may not have been sent
    post(wr, local(from, length));
    if (has_effect) b_.arena.expect(zone_ + to, a_.arena.actual(zone_ + from, length));
  }

  void post_receives() {
    if (error_ == Error::kNoReceive) return;
    receives_ = 3;
    for (u64 i = 0; i < receives_; ++i) {
      SGE sge = {b_.arena.address(landing_), kZoneBytes, landing_b_.l_key};
      if (i == 0 && error_ == Error::kReceiveTooSmall) sge.length = 99;
      if (i == 0 && error_ == Error::kReceiveNotWritable) sge.l_key.value ^= 0x80;
      const RecvWR wr{.wr_id = i, .sg_list = {&sge, 1}};
      ASSERT_EQ(b_.node.post_receive(b_.qps[0], wr), PostError::kOk);
    }
  }

  void provoke() {
    const SendWR write = remote(SendOp::kRDMAWrite, kBadWork);
    const SendWR read = remote(SendOp::kRDMARead, kBadWork);
    const SendWR send = remote(SendOp::kSend, kBadWork);
    const auto changed = [](SendWR wr, auto change) { return change(wr), wr; };
    const auto bad_key = [](SendWR& wr) { wr.r_key.value ^= 0x100; };
    const auto no_right = [this](SendWR& wr) {
      wr.remote_address = b_.arena.address(landing_);
      wr.r_key = landing_b_.r_key;
    };
    const auto beyond = [](SendWR& wr) { wr.remote_address += kZoneBytes - 2999; };
    switch (error_) {
      case Error::kWriteBadKey: return post(changed(write, bad_key), local(0, 3000));
      case Error::kReadBadKey: return post(changed(read, bad_key), local(0, 3000));
      case Error::kAtomicBadKey:
        return post(changed(remote(SendOp::kFetchAdd, kBadWork), bad_key), local(0, 8));
      case Error::kWriteOutOfBounds: return post(changed(write, beyond), local(0, 3000));
      case Error::kReadOutOfBounds: return post(changed(read, beyond), local(0, 3000));
      case Error::kWriteWithoutRight: return post(changed(write, no_right), local(0, 3000));
      case Error::kReadWithoutRight: return post(changed(read, no_right), local(0, 3000));
      case Error::kQPForbidsWrites: return post(write, local(0, 100));
      case Error::kUnalignedAtomic:
        return post(changed(remote(SendOp::kCompareSwap, kBadWork),
                            [](SendWR& wr) { wr.remote_address += 4; }),
                    local(0, 8));
      case Error::kReceiveTooSmall:
      case Error::kReceiveNotWritable:
      case Error::kNoReceive: return post(send, local(0, 100));
      case Error::kInvalidateBadKey:
        // The bytes of the message have arrived; only the key is wrong.
        b_.arena.expect(landing_, a_.arena.actual(zone_, 100));
        return post(changed(remote(SendOp::kSendWithInvalidate, kBadWork),
                            [this](SendWR& wr) { wr.invalidate = zone_b_.r_key; }),
                    local(0, 100));
      case Error::kBadLocalKey:
        return post(write, {a_.arena.address(zone_), 100, LKey{zone_a_.l_key.value ^ 0x100}});
      case Error::kReadLandsNowhere:
        return post(read, {a_.arena.address(zone_ + kZoneBytes - 10), 100, zone_a_.l_key});
      case Error::kBadBind:
        return post(changed(remote(SendOp::kBindMW, kBadWork),
                            [](SendWR& wr) { wr.mw = wr.mw_new = RKey{0x12345600}; }),
                    local(0, 0));
      case Error::kDeadPeer:
        world_.after(us(100), [this] {  // what came before has arrived
          a_.node.link().cut();
          post(remote(SendOp::kSend, kBadWork), local(0, 100));
        });
        return;
    }
  }

  void check() {
    const Expected expected = expected_of(error_);
    const std::vector<CQE> cqes = a_.node.poll(a_.cq);
    if (error_ == Error::kDeadPeer) {  // the WRITEs after it were posted, and done, before
      ASSERT_EQ(cqes.size(), good_before_ + good_after_ + 1);
      EXPECT_EQ(cqes.back().wr_id, kBadWork);
      const bool alone = cqes.size() == 1 || cqes[cqes.size() - 2].status == WQEStatus::kSuccess;
      EXPECT_EQ(cqes.back().status, alone ? expected.requester : WQEStatus::kFlushed);
      EXPECT_TRUE(alone || lossy_);
      return;
    }
    ASSERT_EQ(cqes.size(), good_before_ + 1 + good_after_);
    // On a bad wire an answer may be lost, with the peer dead already.
    const auto found = std::ranges::find_if(
        cqes, [](const CQE& cqe) { return cqe.status != WQEStatus::kSuccess; });
    ASSERT_NE(found, cqes.end());
    const u64 first_bad = static_cast<u64>(found - cqes.begin());
    if (lossy_ && found->status == WQEStatus::kRetryExceeded) {
      EXPECT_LE(first_bad, good_before_);
    } else {
      EXPECT_EQ(first_bad, good_before_);
      EXPECT_EQ(found->status, expected.requester) << to_string(*found);
    }
    for (u64 i = first_bad + 1; i < cqes.size(); ++i)
      EXPECT_EQ(cqes[i].status, WQEStatus::kFlushed);
    check_responder(expected);
    for (Host* host : {&a_, &b_}) EXPECT_EQ(host->arena.difference(), std::nullopt);
  }

  void check_responder(const Expected& expected) {
    const QPState state = b_.node.device().attributes_of(b_.qps[0]).state;
    EXPECT_EQ(state, expected.responder_fails ? QPState::kError : QPState::kRTS);
    const std::vector<CQE> cqes = b_.node.poll(b_.cq);
    if (expected.responder_fails) {
      ASSERT_EQ(cqes.size(), receives_);
      for (u64 i = 0; i < receives_; ++i) {
        EXPECT_EQ(cqes[i].wr_id, i);
        EXPECT_EQ(cqes[i].status,
                  i == 0 && expected.receive ? *expected.receive : WQEStatus::kFlushed);
      }
    } else {
      EXPECT_TRUE(cqes.empty());
    }
    const auto told = [this](AsyncEventType type) {
      return std::ranges::any_of(b_.node.events,
                                 [type](const AsyncEvent& e) { return e.type == type; });
    };
    EXPECT_EQ(told(AsyncEventType::kQPAccessError),
              expected.event == AsyncEventType::kQPAccessError);
    EXPECT_EQ(told(AsyncEventType::kQPRequestError),
              expected.event == AsyncEventType::kQPRequestError);
  }

  void serve_again() {
    if (error_ == Error::kDeadPeer) return;
    for (Host* host : {&a_, &b_}) host->reset(host->qps[0]);
    ASSERT_TRUE(world_.run_until_idle(sec(1)));
    connect_both(kRemote);
    write(1, true);
    ASSERT_TRUE(world_.run_until_idle(sec(1000)));
    const std::vector<CQE> cqes = a_.node.poll(a_.cq);
    ASSERT_EQ(cqes.size(), 1u);
    EXPECT_EQ(cqes[0].status, WQEStatus::kSuccess);
    for (Host* host : {&a_, &b_}) {
      EXPECT_EQ(host->arena.difference(), std::nullopt);
      EXPECT_EQ(host->tear_down(), std::nullopt);
    }
  }

  World& world_;
  const Error error_;
  const bool lossy_;
  QPConfig config_;
  Host a_, b_;
  u64 zone_ = 0, landing_ = 0;  // the same on both
  MRKeys zone_a_, zone_b_, landing_a_, landing_b_;
  u64 good_before_ = 0, good_after_ = 0, receives_ = 0;
};

class RCErrors : public ::testing::TestWithParam<u64> {};

TEST_P(RCErrors, OnAGoodWire) {
  World world(GetParam());
  Scene scene(world, static_cast<Error>(world.prng().below(kErrors)), false);
  scene.play();
  if (HasFailure()) ADD_FAILURE() << world.report();
}

TEST_P(RCErrors, OnABadWire) {
  World world(GetParam());
  Scene scene(world, static_cast<Error>(world.prng().below(kErrors)), true);
  scene.play();
  if (HasFailure()) ADD_FAILURE() << world.report();
}

// memory/late_memory_for_test.h
TEST_P(RCErrors, InMemoryWhoseCopiesEndLate) {
  World world(GetParam());
  world.use_late_memory();
  Scene scene(world, static_cast<Error>(world.prng().below(kErrors)), world.prng().chance(0.5));
  scene.play();
  if (HasFailure()) ADD_FAILURE() << world.report();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RCErrors, ::testing::ValuesIn(seeds(4)), seed_name);

}  // namespace
}  // namespace verbena::sim
