#include "device/qp/engine_runner.h"

#include <gtest/gtest.h>

#include <deque>

#include "device/objects/shared_receive_queue.h"

namespace verbena {
namespace {

CQE completion(u64 wr_id, QPN qp = {}) { return {.wr_id = wr_id, .qp = qp, .source_qp = {}}; }
CQE failure_of(WQEStatus status) { return {.status = status, .qp = {}, .source_qp = {}}; }

// An engine that gives out what the test put in, and notes what it was called with.
class FakeEngine final : public DatagramEngine {
 public:
  explicit FakeEngine(const QPAttributes& attributes) : attributes_(attributes) {}

  PostError post_send(const SendWR&, Time) override {
    if (posts_left == 0) return PostError::kQueueFull;
    --posts_left;
    return post_result;
  }
  void take_back_sends(u32 count) override { taken_back += count; }
  void free_sends(u32 count) override { freed += count; }
  void give_back_receives() override { ++given_back; }
  void on_state(QPState from, Time) override {
    states.push_back({from, attributes_.state});
    if (attributes_.state == QPState::kError)
      for (u32 i = 0; i < flushes; ++i) send_cqes.push_back(failure_of(WQEStatus::kFlushed));
  }
  void on_packet(const PacketView&, const RxContext&, Time) override {}
  bool on_receive_posted(Time) override {
    ++receives_posted;
    return true;
  }
  const QPFault& fault() const override { return fault_; }
  void on_timer(Time) override {
    ++timer_calls;
    deadline = next_deadline;
  }
  bool poll_packet(Time, MaySend, TxPacket& out) override {
    if (packets == 0) return false;
    --packets;
    out.payload.clear();
    return true;
  }
  bool poll_send_cqe(CQE& out) override { return take(send_cqes, out); }
  bool poll_receive_cqe(CQE& out) override { return take(receive_cqes, out); }
  std::optional<EngineEvent> poll_event() override {
    if (events.empty()) return std::nullopt;
    const EngineEvent event = events.front();
    events.pop_front();
    return event;
  }
  EngineOutputs outputs() const override { return possible; }
  Time next_timer() const override { return deadline; }
  const EngineCounters& counters() const override { return counters_; }
  bool is_draining() const override { return false; }

  struct StateChange {
    QPState from, to;
    friend bool operator==(StateChange, StateChange) = default;
  };
  PostError post_result = PostError::kOk;
  u32 posts_left = 1000, taken_back = 0, freed = 0, given_back = 0;
  std::deque<CQE> send_cqes, receive_cqes;
  std::deque<EngineEvent> events;
  std::vector<StateChange> states;
  EngineOutputs possible;
  u32 packets = 0, flushes = 0, receives_posted = 0, timer_calls = 0;
  Time deadline = Time::never(), next_deadline = Time::never();

 private:
  static bool take(std::deque<CQE>& from, CQE& out) {
    if (from.empty()) return false;
    out = from.front();
    from.pop_front();
    return true;
  }
  QPFault fault_;
  const QPAttributes& attributes_;
  EngineCounters counters_;
};

struct EngineRunnerTest : ::testing::Test {
  struct Pair {
    QueuePair* qp;
    FakeEngine* engine;
  };
  Pair create(CompletionQueue& send_cq, CompletionQueue& receive_cq,
              SharedReceiveQueue* srq = nullptr) {
    QPAttributes attributes;
    attributes.qpn = *qps.next_number();
    attributes.state = QPState::kRTS;
    const QPInit init{.send_cq = &send_cq,
                      .receive_cq = &receive_cq,
                      .srq = srq,
                      .send = {},
                      .receive = {.depth = 4, .max_sge = 1}};
    QueuePair* const qp = qps.insert(std::make_unique<QueuePair>(init, attributes));
    auto engine = std::make_unique<FakeEngine>(qp->attributes);
    FakeEngine* const raw = engine.get();
    qp->set_engine(std::move(engine));
    runner.on_created(qps.size());
    return {qp, raw};
  }
  // Has the runner look what has come out of the engine.
  void give_input(QueuePair* qp) { runner.on_packet(*qp, {}, {}, now); }
  // The types of all events that wait, in order.
  std::vector<AsyncEventType> drain() {
    std::vector<AsyncEventType> types;
    while (const std::optional<AsyncEvent> event = events.poll()) types.push_back(event->type);
    return types;
  }
  using Types = std::vector<AsyncEventType>;

  Time now = Time::from_ns(1000);
  ProtectionDomain pd;
  CompletionQueue cq{0, 4, nullptr}, other_cq{1, 4, nullptr};
  QPTable qps{QPN{0x100}, 64};
  AsyncEventQueue events;
  DeviceConfig config;
  ObjectTable<SharedReceiveQueue> srqs{4};
  ProtectionTable memory{4, PRNG(1)};
  EngineRunner runner{config, qps, srqs, events, memory};
};

TEST_F(EngineRunnerTest, CompletionsGoToTheirCQs) {
  const auto [qp, engine] = create(cq, other_cq);
  engine->send_cqes = {completion(1), completion(2)};
  engine->receive_cqes = {completion(3)};
  give_input(qp);
  EXPECT_EQ(cq.size(), 2u);
  EXPECT_EQ(other_cq.size(), 1u);
}

TEST_F(EngineRunnerTest, NotificationsAreDueOncePerCQ) {
  const auto [qp, engine] = create(cq, other_cq);
  cq.request_notification(NotifyOn::kAnyCompletion, now);
  engine->send_cqes = {completion(1), completion(2)};
  give_input(qp);
  EXPECT_EQ(runner.poll_notification(), &cq);
  EXPECT_EQ(runner.poll_notification(), nullptr);
}

TEST_F(EngineRunnerTest, ARefusedPostChangesNothing) {
  const auto [qp, engine] = create(cq, cq);
  engine->post_result = PostError::kQueueFull;
  engine->packets = 1;
  EXPECT_EQ(runner.post_send(*qp, {}, now), PostError::kQueueFull);
  TxPacket packet;
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), nullptr);
}

TEST_F(EngineRunnerTest, APostIsLookedAfterAtOnceOnlyOutsideRTS) {
  const auto [qp, engine] = create(cq, cq);
  engine->send_cqes = {completion(1)};
  EXPECT_EQ(runner.post_send(*qp, {}, now), PostError::kOk);
  EXPECT_EQ(cq.size(), 0u);
  qp->attributes.state = QPState::kError;
  EXPECT_EQ(runner.post_send(*qp, {}, now), PostError::kOk);
  EXPECT_EQ(cq.size(), 1u);
}

TEST_F(EngineRunnerTest, ReceivesGoToTheOwnQueueOnly) {
  const auto [qp, engine] = create(cq, cq);
  EXPECT_EQ(runner.post_receive(*qp, {}, now), PostError::kOk);
  EXPECT_EQ(engine->receives_posted, 1u);
  qp->attributes.state = QPState::kReset;
  EXPECT_EQ(runner.post_receive(*qp, {}, now), PostError::kBadState);
  SharedReceiveQueue srq{0, 1, {.pd = &pd, .limits = {.depth = 4, .max_sge = 1}}};
  EXPECT_EQ(runner.post_receive(*create(cq, cq, &srq).qp, {}, now), PostError::kBadState);
}

TEST_F(EngineRunnerTest, AnErrorThatACQEReportsIsNoFatalEvent) {
  const auto [qp, engine] = create(cq, cq);
  engine->send_cqes = {failure_of(WQEStatus::kRetryExceeded)};
  engine->events = {EngineEvent::kFatal};
  engine->flushes = 2;
  give_input(qp);
  EXPECT_EQ(qp->attributes.state, QPState::kError);
  EXPECT_EQ(engine->states,
            (std::vector<FakeEngine::StateChange>{{QPState::kRTS, QPState::kError}}));
  EXPECT_EQ(cq.size(), 3u);  // the error and what was flushed after it
  EXPECT_EQ(drain(), Types{});
}

TEST_F(EngineRunnerTest, AnErrorThatNothingReportsIsAFatalEvent) {
  const auto [qp, engine] = create(cq, cq);
  engine->events = {EngineEvent::kFatal};
  give_input(qp);
  EXPECT_EQ(drain(), Types{AsyncEventType::kQPFatal});
  engine->events = {EngineEvent::kFatal};  // in Error already
  give_input(qp);
  EXPECT_EQ(engine->states.size(), 1u);
  EXPECT_EQ(drain(), Types{});
}

TEST_F(EngineRunnerTest, AResponderErrorHasItsOwnEvent) {
  for (const auto& [event, type] :
       {std::pair(EngineEvent::kRequestError, AsyncEventType::kQPRequestError),
        std::pair(EngineEvent::kAccessError, AsyncEventType::kQPAccessError)}) {
    const auto [qp, engine] = create(cq, cq);
    engine->events = {EngineEvent::kFatal, event};  // in whatever order
    give_input(qp);
    EXPECT_EQ(qp->attributes.state, QPState::kError);
    EXPECT_EQ(drain(), Types{type});
  }
}

TEST_F(EngineRunnerTest, ASendErrorOfAnUnreliableServiceStopsTheSendQueueOnly) {
  const auto [qp, engine] = create(cq, cq);
  engine->events = {EngineEvent::kSQError};
  give_input(qp);
  EXPECT_EQ(qp->attributes.state, QPState::kSQE);
  qp->attributes.state = QPState::kError;
  engine->events = {EngineEvent::kSQError};
  give_input(qp);
  EXPECT_EQ(qp->attributes.state, QPState::kError);
}

TEST_F(EngineRunnerTest, TheDrainedEventComesOnceAndOnlyIfAskedFor) {
  const auto [qp, engine] = create(cq, cq);
  engine->events = {EngineEvent::kSQDrained};
  runner.enter(*qp, QPState::kSQD, now);
  EXPECT_EQ(drain(), Types{});
  qp->notify_when_drained = true;
  engine->events = {EngineEvent::kSQDrained, EngineEvent::kSQDrained};
  give_input(qp);
  EXPECT_EQ(drain(), Types{AsyncEventType::kSQDrained});
  EXPECT_FALSE(qp->notify_when_drained);
}

TEST_F(EngineRunnerTest, CommunicationEstablishedIsPassedOn) {
  const auto [qp, engine] = create(cq, cq);
  engine->events = {EngineEvent::kCommunicationEstablished};
  give_input(qp);
  EXPECT_EQ(drain(), Types{AsyncEventType::kCommunicationEstablished});
}

TEST_F(EngineRunnerTest, WithAnSRQTheLastWQEIsReachedInError) {
  SharedReceiveQueue srq{0, 1, {.pd = &pd, .limits = {.depth = 4, .max_sge = 1}}};
  const auto [qp, engine] = create(cq, cq, &srq);
  runner.enter(*qp, QPState::kError, now);
  EXPECT_EQ(drain(), Types{AsyncEventType::kQPLastWQEReached});
  runner.enter(*qp, QPState::kError, now);
  EXPECT_EQ(drain(), Types{});
  EXPECT_EQ(engine->states.size(), 1u);
}

TEST_F(EngineRunnerTest, TheSRQLimitIsLookedAtAfterEachCall) {
  SharedReceiveQueue srq{0, 1, {.pd = &pd, .limits = {.depth = 4, .max_sge = 1}}};
  const auto [qp, engine] = create(cq, cq, &srq);
  EXPECT_EQ(srq.queue().push({}), PostError::kOk);
  EXPECT_EQ(srq.modify({.limit = 1}), Status::kOk);
  give_input(qp);
  EXPECT_EQ(drain(), Types{});
  EXPECT_EQ(srq.queue().pop_wr_id(), 0u);
  give_input(qp);
  EXPECT_EQ(drain(), Types{AsyncEventType::kSRQLimitReached});
  EXPECT_EQ(srq.limit(), 0u);
}

TEST_F(EngineRunnerTest, ACQOverrunTakesAllItsQPsToError) {
  const auto [a, engine_a] = create(cq, cq);
  const auto [b, engine_b] = create(other_cq, cq);
  const auto [c, engine_c] = create(other_cq, other_cq);
  const auto [idle, engine_idle] = create(cq, cq);
  idle->attributes.state = QPState::kReset;
  engine_a->send_cqes.resize(5);  // one more than there is room for
  engine_b->flushes = 5;          // overruns the other CQ in turn
  give_input(a);
  EXPECT_TRUE(cq.overrun());
  EXPECT_TRUE(other_cq.overrun());
  for (const QueuePair* const qp : {a, b, c}) EXPECT_EQ(qp->attributes.state, QPState::kError);
  EXPECT_EQ(idle->attributes.state, QPState::kReset);
  EXPECT_EQ(cq.size(), 4u);
  EXPECT_EQ(drain(),
            (Types{AsyncEventType::kCQError, AsyncEventType::kQPFatal, AsyncEventType::kQPFatal,
                   AsyncEventType::kCQError, AsyncEventType::kQPFatal}));
}

TEST_F(EngineRunnerTest, AnOverrunWhilePollingPacketsIsFollowedUpToo) {
  const auto [qp, engine] = create(cq, cq);
  give_input(qp);
  engine->packets = 1;
  engine->send_cqes.resize(5);
  TxPacket packet;
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), qp);
  EXPECT_EQ(qp->attributes.state, QPState::kError);
}

TEST_F(EngineRunnerTest, PacketsComeInRunsInTurn) {
  const auto [a, engine_a] = create(cq, cq);
  const auto [b, engine_b] = create(cq, cq);
  give_input(a);
  give_input(b);
  engine_a->packets = 40;
  engine_b->packets = 3;
  std::vector<std::pair<QueuePair*, int>> runs;
  TxPacket packet;
  while (QueuePair* const qp = runner.poll_packet(now, Trains::kNo, packet)) {
    if (runs.empty() || runs.back().first != qp) runs.push_back({qp, 0});
    ++runs.back().second;
  }
  EXPECT_EQ(runs, (std::vector<std::pair<QueuePair*, int>>{{a, 32}, {b, 3}, {a, 8}}));
}

TEST_F(EngineRunnerTest, ATimerFiresWhenItsDeadlineHasCome) {
  const auto [qp, engine] = create(cq, cq);
  engine->deadline = now + us(10);
  give_input(qp);
  EXPECT_EQ(runner.next_timer(), now + us(10));
  runner.on_timer(now + us(9));
  EXPECT_EQ(engine->timer_calls, 0u);
  engine->next_deadline = now + us(30);
  runner.on_timer(now + us(10));
  EXPECT_EQ(engine->timer_calls, 1u);
  EXPECT_EQ(runner.next_timer(), now + us(30));
}

TEST_F(EngineRunnerTest, APacketArmsTheTimer) {
  const auto [qp, engine] = create(cq, cq);
  engine->packets = 2;
  give_input(qp);
  EXPECT_EQ(runner.next_timer(), Time::never());
  TxPacket packet;
  engine->deadline = now + us(10);
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), qp);
  EXPECT_EQ(runner.next_timer(), now + us(10));
  engine->deadline = now + us(30);
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), qp);
  runner.on_timer(now + us(10));
  EXPECT_EQ(engine->timer_calls, 0u);
  EXPECT_EQ(runner.next_timer(), now + us(30));
}

// An entry of the timer that was armed before may still exist, and is too late.
TEST_F(EngineRunnerTest, APacketMayArmTheTimerForSooner) {
  const auto [qp, engine] = create(cq, cq);
  engine->deadline = now + us(100);
  give_input(qp);
  engine->deadline = Time::never();
  engine->packets = 1;
  give_input(qp);
  TxPacket packet;
  engine->deadline = now + us(10);
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), qp);
  EXPECT_EQ(runner.next_timer(), now + us(10));
}

// It was not, where a long READ was deferred behind a packet: it waited for the packet's timer.
TEST_F(EngineRunnerTest, APacketMayLeaveASoonerDeadline) {
  const auto [qp, engine] = create(cq, cq);
  engine->deadline = now + us(100);
  engine->packets = 1;
  give_input(qp);
  engine->possible = {.send_cqe = false, .receive_cqe = false, .event = false};
  engine->deadline = now + us(10);
  TxPacket packet;
  EXPECT_EQ(runner.poll_packet(now, Trains::kNo, packet), qp);
  EXPECT_EQ(runner.next_timer(), now + us(10));
}

TEST_F(EngineRunnerTest, ADeadlineThatMovedIsLookedUpAgain) {
  const auto [qp, engine] = create(cq, cq);
  engine->deadline = now + us(10);
  give_input(qp);
  engine->deadline = now + us(50);
  give_input(qp);
  runner.on_timer(now + us(10));
  EXPECT_EQ(engine->timer_calls, 0u);
  EXPECT_EQ(runner.next_timer(), now + us(50));
  engine->deadline = Time::never();
  runner.on_timer(now + us(50));
  EXPECT_EQ(engine->timer_calls, 0u);
  EXPECT_EQ(runner.next_timer(), Time::never());
}

TEST_F(EngineRunnerTest, AnEngineThatIsAlwaysDueDoesNotHoldUsForEver) {
  const auto [qp, engine] = create(cq, cq);
  engine->deadline = engine->next_deadline = now;
  give_input(qp);
  runner.on_timer(now);
  EXPECT_EQ(engine->timer_calls, 1u);
}

TEST_F(EngineRunnerTest, ResetForgetsEverything) {
  const auto [qp, engine] = create(cq, other_cq);
  QPAttributes initial;
  initial.qpn = qp->attributes.qpn;
  engine->send_cqes = {completion(1, initial.qpn), completion(2, QPN{1})};
  engine->receive_cqes = {completion(3, initial.qpn)};
  engine->events = {EngineEvent::kFatal};
  engine->deadline = now + us(1);
  EXPECT_EQ(runner.post_receive(*qp, {}, now), PostError::kOk);
  runner.reset(*qp, initial, now);
  EXPECT_EQ(engine->states.back(), (FakeEngine::StateChange{QPState::kError, QPState::kReset}));
  EXPECT_EQ(cq.size(), 1u);  // another QP's
  EXPECT_EQ(other_cq.size(), 0u);
  EXPECT_TRUE(qp->own_receive_queue->empty());
  EXPECT_EQ(runner.next_timer(), Time::never());
  EXPECT_EQ(drain(), Types{});
}

TEST_F(EngineRunnerTest, ABatchIsPostedWholeOrNotAtAll) {
  const auto [qp, engine] = create(cq, cq);
  engine->posts_left = 2;
  const std::array<SendWR, 3> batch{};
  engine->send_cqes = {completion(1)};
  EXPECT_EQ(runner.post_sends(*qp, batch, now), PostError::kQueueFull);
  EXPECT_EQ(engine->taken_back, 2u);
  EXPECT_EQ(cq.size(), 0u) << "nothing has come of it";
  engine->posts_left = 3;
  EXPECT_EQ(runner.post_sends(*qp, batch, now), PostError::kOk);
  EXPECT_EQ(engine->taken_back, 2u);
}

TEST_F(EngineRunnerTest, CompletionsBearTheTime) {
  const auto [qp, engine] = create(cq, cq);
  engine->send_cqes = {completion(1)};
  give_input(qp);
  CQE cqe;
  ASSERT_EQ(cq.poll({&cqe, 1}), 1u);
  EXPECT_EQ(cqe.completed_at, now);
}

TEST_F(EngineRunnerTest, AModeratedNotificationIsDueWhenItsPeriodHasPassed) {
  const auto [qp, engine] = create(cq, other_cq);
  cq.moderate({.count = 10, .period = us(7)});
  cq.request_notification(NotifyOn::kAnyCompletion, now);
  engine->send_cqes = {completion(1), completion(2)};
  give_input(qp);
  EXPECT_EQ(runner.poll_notification(), nullptr);
  EXPECT_EQ(runner.next_timer(), now + us(7));
  runner.on_timer(now + us(6));
  EXPECT_EQ(runner.poll_notification(), nullptr);
  runner.on_timer(now + us(7));
  EXPECT_EQ(runner.poll_notification(), &cq);
  EXPECT_EQ(runner.poll_notification(), nullptr);
  EXPECT_EQ(runner.next_timer(), Time::never());
}

struct LeftoversTest : EngineRunnerTest {
  // A consumer that has taken one of two after its request.
  void leave_one(CompletionQueue& where) {
    (void)where.push(completion(1));
    (void)where.push(completion(2));
    runner.request_notification(where, NotifyOn::kAnyCompletion, now);
    take_one(where);
  }
  static void take_one(CompletionQueue& where) {
    CQE cqe;
    EXPECT_EQ(where.poll({&cqe, 1}), 1u);
  }
};

TEST_F(LeftoversTest, AreToldOfSomeTimeAfterTheRequest) {
  leave_one(cq);
  EXPECT_EQ(runner.next_timer(), now + NotificationQueue::kTakenSoon);
  runner.on_timer(now + NotificationQueue::kTakenSoon - ns(1));
  EXPECT_EQ(runner.poll_notification(), nullptr);
  runner.on_timer(now + NotificationQueue::kTakenSoon);
  EXPECT_EQ(runner.poll_notification(), &cq);
  EXPECT_EQ(runner.next_timer(), Time::never());
  EXPECT_EQ(cq.push(completion(3)), CQPush::kAdded) << "once per request";
}

TEST_F(LeftoversTest, AreToldOfBeforeTheConsumerSleeps) {
  leave_one(cq);
  leave_one(other_cq);
  take_one(cq);
  runner.hurry_leftovers();
  EXPECT_EQ(runner.poll_notification(), &other_cq);
  EXPECT_EQ(runner.poll_notification(), nullptr);
}

TEST_F(LeftoversTest, AreToldOfNoMoreWhereACompletionWas) {
  leave_one(cq);
  const auto [qp, engine] = create(cq, other_cq);
  engine->send_cqes = {completion(3)};
  give_input(qp);
  EXPECT_EQ(runner.poll_notification(), &cq);
  runner.hurry_leftovers();
  EXPECT_EQ(runner.poll_notification(), nullptr);
}

TEST_F(LeftoversTest, OfACQThatGoesAreForgotten) {
  leave_one(cq);
  runner.forget(cq);
  EXPECT_EQ(runner.next_timer(), Time::never());
}

TEST_F(EngineRunnerTest, AModeratedCQThatGoesIsForgotten) {
  const auto [qp, engine] = create(cq, other_cq);
  cq.moderate({.count = 10, .period = us(7)});
  cq.request_notification(NotifyOn::kAnyCompletion, now);
  engine->send_cqes = {completion(1)};
  give_input(qp);
  runner.forget(cq);
  EXPECT_EQ(runner.next_timer(), Time::never());
}

}  // namespace
}  // namespace verbena
