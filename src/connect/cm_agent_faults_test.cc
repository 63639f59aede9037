// CMAgent: failures. Lost, repeated and stale messages, peers that die, limits, bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "connect/cm_agent.h"
#include "connect/cm_test_pair.h"
#include "connect/cm_timeout.h"

namespace verbena {
namespace {

using test::body_of;
using test::kActiveQPN;
using test::kPassiveQPN;
using test::kService;
using test::name_of;
using test::names_of;
using test::Place;

class CMAgentFaultsTest : public testing::Test, public test::Pair {};

// --- retries

TEST_F(CMAgentFaultsTest, AREQIsRepeatedAsOftenAsAskedAndNoMore) {
  connect();  // max_cm_retries 2
  const std::vector<MADOut> first = a.mads();
  const Duration wait = cm_response_time(kDefaultCMResponseTimeout, kDefaultPacketLifeTime);
  for (int retry = 1; retry <= 2; ++retry) {
    EXPECT_EQ(a.agent.next_timer(), now + wait);
    a.agent.on_timer(now + wait - ps(1));
    EXPECT_EQ(names_of(a.mads()), "");  // early
    fire_timer(a);
    const std::vector<MADOut> again = a.mads();
    ASSERT_EQ(names_of(again), "REQ");
    EXPECT_EQ(again[0].mad, first[0].mad);  // the same bytes
  }
  fire_timer(a);
  const std::vector<MADOut> last = a.mads();
  ASSERT_EQ(names_of(last), "REJ");  // lest a late REP be waited for. 12.6.7.2, code 4
  const auto rej = std::get<cm::REJ>(body_of(last[0]));
  EXPECT_EQ(rej.reason, cm::RejectReason::kTimeout);
  EXPECT_EQ(rej.reject_info_length, 8);
  EXPECT_EQ(rej.ari[7], 3);  // our CA GUID
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "Unreachable");
  EXPECT_EQ(std::get<Unreachable>(events[0].what).what, Unanswered::kREQ);
  EXPECT_EQ(a.agent.connections(), 0u);
  EXPECT_EQ(a.agent.counters().retries_sent, 2u);
}

TEST_F(CMAgentFaultsTest, AREPIsRepeatedThenGivenUp) {
  request();
  accept();
  const std::vector<MADOut> first = b.mads();
  for (int retry = 1; retry <= 2; ++retry) {
    fire_timer(b);
    const std::vector<MADOut> again = b.mads();
    ASSERT_EQ(names_of(again), "REP");
    EXPECT_EQ(again[0].mad, first[0].mad);
  }
  fire_timer(b);
  EXPECT_EQ(names_of(b.mads()), "REJ");
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "Unreachable");
  EXPECT_EQ(std::get<Unreachable>(events[0].what).what, Unanswered::kREP);
  EXPECT_EQ(events[0].user, 2u);
  EXPECT_EQ(b.agent.establish(passive), Status::kNotFound);
}

TEST_F(CMAgentFaultsTest, APassiveSideThatGivesUpTellsTheActive) {  // its RTU was lost
  reply();
  EXPECT_EQ(a.agent.ready_to_use(active, {}), Status::kOk);
  (void)a.mads();
  for (int i = 0; i < 2; ++i) {
    fire_timer(b);
    (void)b.mads();
  }
  fire_timer(b);
  EXPECT_EQ(carry(b, a), "REJ");
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "Disconnected");
  EXPECT_EQ(std::get<Disconnected>(events[0].what).cause, DisconnectCause::kRejected);
}

TEST_F(CMAgentFaultsTest, ADREQWithoutReplyStillEnds) {
  establish();
  EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kOk);
  EXPECT_EQ(let_time_pass(a), "Disconnected TimeWaitExit");
  EXPECT_EQ(a.agent.connections(), 0u);
  EXPECT_EQ(a.agent.counters().retries_sent, 2u);
}

TEST_F(CMAgentFaultsTest, ASIDRREQWithoutReplyEnds) {
  sidr_request();
  EXPECT_EQ(let_time_pass(a), "Unreachable");
  EXPECT_EQ(a.agent.connections(), 0u);
}

TEST_F(CMAgentFaultsTest, AnMRAPutsOffTheNextRetry) {  // 12.9.8.5
  request();
  EXPECT_EQ(b.agent.mra(passive, {.service_timeout = 23, .when = MRATime::kNow}), Status::kOk);
  EXPECT_EQ(carry(b, a), "MRA");
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "ReceiptAcknowledged");
  EXPECT_EQ(std::get<ReceiptAcknowledged>(events[0].what).mra.service_timeout, 23);
  EXPECT_EQ(a.agent.next_timer(), now + cm_response_time(23, kDefaultPacketLifeTime));
  fire_timer(a);  // still nothing: ask again
  EXPECT_EQ(carry(a, b), "REQ");
  EXPECT_EQ(carry(b, a), "MRA");  // and have the same answer
  EXPECT_EQ(names_of(a.events()), "ReceiptAcknowledged");
  accept();
  EXPECT_EQ(carry(b, a), "REP");
  EXPECT_EQ(names_of(a.events()), "ReplyReceived");
}

TEST_F(CMAgentFaultsTest, AnMRAOnDuplicateIsQuietUntilThen) {  // as Linux's rdma_cm does
  request();
  EXPECT_EQ(b.agent.mra(passive, {}), Status::kOk);
  EXPECT_EQ(names_of(b.mads()), "");
  fire_timer(a);
  EXPECT_EQ(carry(a, b), "REQ");
  EXPECT_EQ(carry(b, a), "MRA");
}

TEST_F(CMAgentFaultsTest, EvenAnsweredWithMRAsAConnectEnds) {
  connect();
  int asked = 0;
  while (a.agent.connections() != 0) {
    fire_timer(a);
    for (const MADOut& mad : a.mads())
      if (name_of(body_of(mad)) == "REQ") ++asked;
    a.receive(b.gid, cm::MRA{.local_comm_id = CommId{9}, .remote_comm_id = active}, now);
  }
  EXPECT_EQ(asked, 3);  // max_cm_retries 2
}

// --- repetition

TEST_F(CMAgentFaultsTest, ALostREPIsSentAgainForTheREQ) {
  request();
  accept();
  const std::vector<MADOut> lost = b.mads();
  fire_timer(a);
  EXPECT_EQ(carry(a, b), "REQ");
  const std::vector<MADOut> again = b.mads();
  ASSERT_EQ(names_of(again), "REP");
  EXPECT_EQ(again[0].mad, lost[0].mad);
  EXPECT_EQ(names_of(b.events()), "");
  EXPECT_EQ(b.agent.counters().duplicates, 1u);
}

TEST_F(CMAgentFaultsTest, ALostRTUIsSentAgainForTheREP) {
  const std::array<u8, 1> data = {9};
  reply();
  EXPECT_EQ(a.agent.ready_to_use(active, data), Status::kOk);
  const std::vector<MADOut> lost = a.mads();
  fire_timer(b);
  EXPECT_EQ(carry(b, a), "REP");
  EXPECT_EQ(names_of(a.events()), "");
  const std::vector<MADOut> again = a.mads();
  ASSERT_EQ(names_of(again), "RTU");
  EXPECT_EQ(again[0].mad, lost[0].mad);  // private data and all
  b.receive(again[0], now);
  EXPECT_EQ(names_of(b.events()), "Established");
  b.receive(again[0], now);
  EXPECT_EQ(names_of(b.events()), "");  // once
}

TEST_F(CMAgentFaultsTest, ALostDREPIsSentAgainForTheDREQ) {
  const std::array<u8, 1> data = {9};
  disconnect();
  EXPECT_EQ(b.agent.reply_disconnect(passive, data, now), Status::kOk);
  const std::vector<MADOut> lost = b.mads();
  const Time end = b.agent.next_timer();
  a.agent.on_timer(a.agent.next_timer());
  EXPECT_EQ(carry(a, b), "DREQ");
  const std::vector<MADOut> again = b.mads();
  ASSERT_EQ(names_of(again), "DREP");
  EXPECT_EQ(again[0].mad, lost[0].mad);
  EXPECT_EQ(b.agent.next_timer(), end);
}

TEST_F(CMAgentFaultsTest, ALostREJIsSentAgainForTheREQ) {
  request();
  EXPECT_EQ(b.agent.reject(passive, {}, now), Status::kOk);
  const std::vector<MADOut> lost = b.mads();
  fire_timer(a);
  EXPECT_EQ(carry(a, b), "REQ");
  const std::vector<MADOut> again = b.mads();
  ASSERT_EQ(names_of(again), "REJ");
  EXPECT_EQ(again[0].mad, lost[0].mad);
  EXPECT_EQ(names_of(b.events()), "");  // not a new request
}

TEST_F(CMAgentFaultsTest, ALostSIDRREPIsSentAgain) {
  const Place place = reach(CMState::kSIDRREQReceived);
  EXPECT_EQ(b.agent.sidr_reply(place.id, {.qpn = QPN{5}}, now), Status::kOk);
  const std::vector<MADOut> lost = b.mads();
  fire_timer(a);
  EXPECT_EQ(carry(a, b), "SIDR_REQ");
  const std::vector<MADOut> again = b.mads();
  ASSERT_EQ(names_of(again), "SIDR_REP");
  EXPECT_EQ(again[0].mad, lost[0].mad);
  EXPECT_EQ(names_of(b.events()), "");
}

// --- connections that have ended, or never existed

TEST_F(CMAgentFaultsTest, ADREQForNothingIsAnswered) {
  b.receive(a.gid, cm::DREQ{.local_comm_id = CommId{5}, .remote_comm_id = CommId{6}}, now, 42);
  const std::vector<MADOut> mads = b.mads();
  ASSERT_EQ(names_of(mads), "DREP");
  EXPECT_EQ(body_of(mads[0]),
            cm::Body(cm::DREP{.local_comm_id = CommId{6}, .remote_comm_id = CommId{5}}));
  EXPECT_EQ(cm::Message::decode(mads[0].mad)->transaction_id, 42u);
  EXPECT_EQ(mads[0].source, b.gid);
  EXPECT_EQ(mads[0].destination, a.gid);
}

TEST_F(CMAgentFaultsTest, ADREQForAnotherQPIsNone) {  // Linux drops it too
  establish();
  b.receive(a.gid,
            cm::DREQ{.local_comm_id = active, .remote_comm_id = passive, .remote_qpn = QPN{1}},
            now);
  EXPECT_EQ(names_of(b.mads()), "");
  EXPECT_EQ(names_of(b.events()), "");
}

TEST_F(CMAgentFaultsTest, AREPForNothingIsRefused) {  // the peer need not wait for its RTU
  request();
  accept();
  EXPECT_EQ(a.agent.abandon(active, now), Status::kOk);
  (void)a.mads();  // that REJ is lost
  carry(b, a);
  EXPECT_EQ(carry(a, b), "REJ");
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "Rejected");
  EXPECT_EQ(std::get<Rejected>(events[0].what).rej.reason,
            cm::RejectReason::kInvalidCommunicationID);
}

TEST_F(CMAgentFaultsTest, AREJOfAPeerThatNeverLearnedOurID) {
  request();
  EXPECT_EQ(a.agent.abandon(active, now), Status::kOk);
  EXPECT_EQ(carry(a, b), "REJ");  // its Remote Communication ID is 0
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "Rejected");
  EXPECT_EQ(std::get<Rejected>(events[0].what).rej.reason, cm::RejectReason::kTimeout);
  EXPECT_EQ(b.agent.accept(passive, {}, now), Status::kNotFound);
}

TEST_F(CMAgentFaultsTest, AREJOfAREQThatHasItsREPIsLate) {
  for (const CMState state : {CMState::kREPReceived, CMState::kEstablished, CMState::kDREQSent}) {
    test::Pair pair;
    const Place place = pair.reach(state);
    pair.a.receive(pair.b.gid, cm::REJ{.remote_comm_id = place.id}, pair.now);
    EXPECT_EQ(names_of(pair.a.events()), "") << name_of(state);
    EXPECT_EQ(pair.a.agent.counters().unmatched, 1u) << name_of(state);
  }
}

// --- stale connections, 12.9.8.3.1

TEST_F(CMAgentFaultsTest, AREQFromAConnectedQPMeansThatThePeerStartedAnew) {
  establish();
  test::TestHost reborn("10.0.0.1",
                        {.process_slot = ProcessSlot{3}, .ca_guid = GUID{3}, .seed = 99});
  const CommId id = *reborn.agent.connect(params(), now);  // with the same QPN
  carry(reborn, b);
  const std::vector<MADOut> mads = b.mads();
  ASSERT_EQ(names_of(mads), "DREQ REJ");
  EXPECT_EQ(std::get<cm::DREQ>(body_of(mads[0])).remote_comm_id, active);
  const auto rej = std::get<cm::REJ>(body_of(mads[1]));
  EXPECT_EQ(rej.reason, cm::RejectReason::kStaleConnection);
  EXPECT_EQ(rej.remote_comm_id, id);
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "Disconnected");
  EXPECT_EQ(std::get<Disconnected>(events[0].what).cause, DisconnectCause::kStale);
  for (const MADOut& mad : mads) reborn.receive(mad, now);
  EXPECT_EQ(names_of(reborn.events()), "Rejected");
  EXPECT_EQ(carry(reborn, b), "DREP");  // it does not know that connection
  EXPECT_EQ(names_of(b.events()), "");  // told already
  EXPECT_EQ(let_time_pass(b), "TimeWaitExit");

  ASSERT_TRUE(reborn.agent.connect(params(), now).has_value());  // now it may
  carry(reborn, b);
  EXPECT_EQ(names_of(b.events()), "ConnectRequest");
}

TEST_F(CMAgentFaultsTest, AREQFromAQPThatIsStillConnectingEndsThatAttempt) {
  for (const CMState state :
       {CMState::kREQReceived, CMState::kMRAREQSent, CMState::kREPSent, CMState::kMRAREPReceived}) {
    test::Pair pair;
    const Place place = pair.reach(state);
    pair.b.receive(pair.a.gid,
                   cm::REQ{.local_comm_id = CommId{0x999},
                           .service_id = kService,
                           .local_ca_guid = GUID{3},
                           .local_qpn = kActiveQPN,
                           .path_mtu_code = 3},
                   pair.now);
    EXPECT_EQ(names_of(pair.b.events()), "Rejected") << name_of(state);
    EXPECT_EQ(names_of(pair.b.mads()), "REJ REJ") << name_of(state);
    EXPECT_EQ(pair.b.agent.accept(place.id, {}, pair.now), Status::kNotFound);
    EXPECT_EQ(pair.b.agent.counters().stale_connections, 1u);
  }
}

TEST_F(CMAgentFaultsTest, AREPFromAConnectedQPIsStaleToo) {
  establish();
  ConnectParams p = params();
  p.qpn = QPN{0x24};
  connect(p);
  (void)a.mads();
  a.receive(b.gid,
            cm::REP{.local_comm_id = CommId{0x999},
                    .remote_comm_id = active,
                    .local_qpn = kPassiveQPN,
                    .local_ca_guid = GUID{5}},
            now);
  EXPECT_EQ(names_of(a.mads()), "DREQ REJ");
  EXPECT_EQ(names_of(a.events()), "Disconnected Rejected");
}

TEST_F(CMAgentFaultsTest, AQPInTimeWaitOrBeingReleasedMayConnectAgain) {
  for (const CMState state : {CMState::kDREQReceived, CMState::kTimeWait}) {
    test::Pair pair;
    pair.reach(state);
    pair.connect();
    EXPECT_EQ(pair.carry(pair.a, pair.b), "REQ");
    EXPECT_EQ(names_of(pair.b.events()), "ConnectRequest") << name_of(state);
  }
}

TEST_F(CMAgentFaultsTest, AnotherHostsQPOfTheSameNumberIsAnother) {
  establish();
  test::TestHost other("10.0.0.3", {.ca_guid = GUID{3}, .seed = 9});
  ConnectParams p = params();
  p.local_gid = other.gid;
  ASSERT_TRUE(other.agent.connect(p, now).has_value());
  carry(other, b);
  EXPECT_EQ(names_of(b.events()), "ConnectRequest");
}

// --- peers that die

// The peer is silent, and the program continues as usual: the failure that it is told.
TEST(CMAgentDeathTest, EveryStateEndsWithoutThePeer) {
  const std::map<CMState, std::string> expected = {
      {CMState::kREQSent, "Unreachable"},
      {CMState::kMRAREQReceived, "Unreachable"},
      {CMState::kREPReceived, "Disconnected TimeWaitExit"},  // ready_to_use, then disconnect
      {CMState::kMRAREPSent, "Disconnected TimeWaitExit"},
      {CMState::kREQReceived, "Unreachable"},  // accept
      {CMState::kMRAREQSent, "Unreachable"},
      {CMState::kREPSent, "Unreachable"},
      {CMState::kMRAREPReceived, "Unreachable"},
      {CMState::kEstablished, "Disconnected TimeWaitExit"},  // disconnect
      {CMState::kDREQSent, "Disconnected TimeWaitExit"},
      {CMState::kDREQReceived, "TimeWaitExit"},  // reply_disconnect
      {CMState::kTimeWait, "TimeWaitExit"},
      {CMState::kRetired, ""},
      {CMState::kSIDRREQSent, "Unreachable"},
      {CMState::kSIDRREQReceived, ""},  // sidr_reply
  };
  for (const CMState state : test::kStates) {
    test::Pair pair;
    const Place place = pair.reach(state);
    CMAgent& agent = place.host->agent;
    const Time start = pair.now;
    // Calls that the state does not allow are refused and have no effect.
    (void)agent.accept(place.id, {}, pair.now);
    (void)agent.ready_to_use(place.id, {});
    (void)agent.disconnect(place.id, {}, pair.now);
    (void)agent.reply_disconnect(place.id, {}, pair.now);
    (void)agent.sidr_reply(place.id, {}, pair.now);
    EXPECT_EQ(pair.let_time_pass(*place.host), expected.at(state)) << name_of(state);
    EXPECT_EQ(agent.connections(), 0u) << name_of(state);
    EXPECT_LE(pair.now, start + sec(120)) << name_of(state);
  }
}

// --- limits

TEST_F(CMAgentFaultsTest, ARequestBeyondTheBacklogIsDropped) {  // Linux drops it as well
  EXPECT_EQ(b.agent.unlisten(listener), Status::kOk);
  ASSERT_TRUE(b.agent.listen({.service_id = kService, .backlog = 1}).has_value());
  const auto ask = [this](u32 qpn) {
    ConnectParams p = params();
    p.qpn = QPN{qpn};
    connect(p);
    carry(a, b);
    const std::vector<CMEvent> events = b.events();
    return events.empty() ? CommId{} : events[0].id;
  };
  const CommId first = ask(1);
  EXPECT_NE(first, CommId{});
  EXPECT_EQ(ask(2), CommId{});
  EXPECT_EQ(names_of(b.mads()), "");  // not a word: the peer asks again
  EXPECT_EQ(b.agent.counters().backlog_drops, 1u);
  sidr_request();
  carry(a, b);
  EXPECT_EQ(b.agent.counters().backlog_drops, 2u);

  EXPECT_EQ(b.agent.take_request(first), Status::kOk);  // off the program's queue: room again
  const CommId second = ask(3);
  EXPECT_NE(second, CommId{});
  EXPECT_EQ(b.agent.accept(second, {}, now), Status::kOk);
  const CommId third = ask(4);
  EXPECT_NE(third, CommId{});
  EXPECT_EQ(b.agent.reject(third, {}, now), Status::kOk);
  const CommId fourth = ask(5);
  EXPECT_NE(fourth, CommId{});
  EXPECT_EQ(b.agent.abandon(fourth, now), Status::kOk);
  EXPECT_NE(ask(6), CommId{});
  EXPECT_EQ(b.agent.take_request(first), Status::kOk);  // counts once
  EXPECT_EQ(ask(7), CommId{});
}

TEST_F(CMAgentFaultsTest, AFullTableTakesNoMore) {
  for (u32 i = 0; i < kMaxConnections; ++i) {
    ConnectParams p = params();
    p.qpn = QPN{0x100 + i};
    ASSERT_TRUE(a.agent.connect(p, now).has_value());
    carry(a, b);
  }
  EXPECT_EQ(a.agent.connect(params(), now), failure(Status::kNoMemory));
  EXPECT_EQ(a.agent.sidr_request({}, now), failure(Status::kNoMemory));
  EXPECT_EQ(b.events().size(), kMaxConnections);
  b.receive(a.gid,
            cm::REQ{.local_comm_id = CommId{0x999}, .service_id = kService, .path_mtu_code = 3},
            now);
  EXPECT_EQ(names_of(b.events()), "");
  b.receive(a.gid, cm::SIDRREQ{.request_id = CommId{0x998}, .service_id = kService}, now);
  EXPECT_EQ(names_of(b.events()), "");
  EXPECT_EQ(names_of(b.mads()), "");
  EXPECT_EQ(b.agent.counters().table_drops, 2u);
}

TEST_F(CMAgentFaultsTest, TimeWaitMakesRoomInAFullTable) {
  const Place place = reach(CMState::kTimeWait);
  for (u32 i = 1; i < kMaxConnections; ++i) {
    ConnectParams p = params();
    std::swap(p.local_gid, p.remote_gid);
    ASSERT_TRUE(b.agent.connect(p, now).has_value());
  }
  EXPECT_EQ(names_of(b.events()), "");
  ASSERT_TRUE(b.agent.sidr_request({.local_gid = b.gid, .remote_gid = a.gid}, now).has_value());
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "TimeWaitExit");
  EXPECT_EQ(events[0].id, place.id);
  EXPECT_EQ(b.agent.connections(), kMaxConnections);
}

TEST_F(CMAgentFaultsTest, ADriverThatDoesNotDrainLosesMADsAndNoEvents) {
  test::TestHost host("10.0.0.2", {.seed = 1});
  ASSERT_TRUE(host.agent.listen({.service_id = kService}).has_value());
  u32 sent = 0;
  for (; sent < 200; ++sent)
    host.receive(a.gid,
                 cm::REQ{.local_comm_id = CommId{1 + sent},
                         .service_id = kService,
                         .local_qpn = QPN{sent},
                         .path_mtu_code = 3},
                 now);
  const std::size_t told = host.events().size();
  EXPECT_EQ(told, host.agent.connections());  // one event for each, none lost
  EXPECT_EQ(told + host.agent.counters().output_drops, sent);
  for (int i = 0; i < 200; ++i)
    host.receive(a.gid, cm::DREQ{.local_comm_id = CommId{5}, .remote_comm_id = CommId{6}}, now);
  EXPECT_EQ(host.mads().size() + host.agent.counters().output_drops, 400u - told);
}

TEST_F(CMAgentFaultsTest, ManyTimersAtOnceFireOverSeveralCalls) {
  test::TestHost host("10.0.0.2", {.seed = 1});
  for (u32 i = 0; i < 100; ++i) {
    ASSERT_TRUE(host.agent.connect(params(), now).has_value());
    (void)host.mads();
  }
  now = host.agent.next_timer();
  std::size_t repeated = 0;
  int calls = 0;
  for (; host.agent.next_timer() <= now; ++calls) {
    host.agent.on_timer(now);
    repeated += host.mads().size();
  }
  EXPECT_EQ(repeated, 100u);
  EXPECT_GT(calls, 1);
}

// --- bad input

template <typename Params>
Params with_data(Params params, std::span<const u8> data, std::size_t size) {
  params.private_data = data.first(size);
  return params;
}

TEST_F(CMAgentFaultsTest, PrivateDataThatIsTooLongIsRefused) {  // 12.6.5 to 12.6.11
  const std::array<u8, 256> data{};
  const auto refused = Status::kInvalidArgument;
  EXPECT_EQ(a.agent.connect(with_data(params(), data, 93), now), failure(refused));
  connect(with_data(params(), data, 92));
  carry(a, b);
  passive = b.events()[0].id;
  EXPECT_EQ(b.agent.mra(passive, with_data(MRAParams{}, data, 223)), refused);
  EXPECT_EQ(b.agent.mra(passive, with_data(MRAParams{}, data, 222)), Status::kOk);
  EXPECT_EQ(b.agent.reject(passive, with_data(RejectParams{}, data, 149), now), refused);
  EXPECT_EQ(b.agent.reject(passive, {.ari = std::span(data).first(73)}, now), refused);
  const AcceptParams reply{.qpn = kPassiveQPN};
  EXPECT_EQ(b.agent.accept(passive, with_data(reply, data, 197), now), refused);
  EXPECT_EQ(b.agent.accept(passive, with_data(reply, data, 196), now), Status::kOk);
  carry(b, a);
  EXPECT_EQ(a.agent.ready_to_use(active, std::span(data).first(225)), refused);
  EXPECT_EQ(a.agent.ready_to_use(active, std::span(data).first(224)), Status::kOk);
  carry(a, b);
  EXPECT_EQ(a.agent.disconnect(active, std::span(data).first(221), now), refused);
  EXPECT_EQ(a.agent.disconnect(active, std::span(data).first(220), now), Status::kOk);
  carry(a, b);
  EXPECT_EQ(b.agent.reply_disconnect(passive, std::span(data).first(225), now), refused);
  EXPECT_EQ(b.agent.reply_disconnect(passive, std::span(data).first(224), now), Status::kOk);
}

TEST_F(CMAgentFaultsTest, SIDRPrivateDataThatIsTooLongIsRefused) {  // 12.11.1, 12.11.2
  const std::array<u8, 256> data{};
  const SIDRRequestParams ask{.local_gid = a.gid, .remote_gid = b.gid, .service_id = kService};
  EXPECT_EQ(a.agent.sidr_request(with_data(ask, data, 217), now),
            failure(Status::kInvalidArgument));
  ASSERT_TRUE(a.agent.sidr_request(with_data(ask, data, 216), now).has_value());
  carry(a, b);
  const CommId id = b.events()[0].id;
  EXPECT_EQ(b.agent.sidr_reply(id, with_data(SIDRReplyParams{}, data, 137), now),
            Status::kInvalidArgument);
  EXPECT_EQ(b.agent.sidr_reply(id, with_data(SIDRReplyParams{}, data, 136), now), Status::kOk);
}

template <typename T>
ConnectParams set(ConnectParams p, T ConnectParams::*member, T value) {
  p.*member = value;
  return p;
}

TEST_F(CMAgentFaultsTest, WhatDoesNotFitItsFieldIsRefused) {
  using P = ConnectParams;
  const P p = params();
  for (const P& bad :
       {set(p, &P::qpn, QPN{1u << 24}), set(p, &P::retry_count, u8{8}),
        set(p, &P::rnr_retry_count, u8{8}), set(p, &P::flow_label, 1u << 20),
        set(p, &P::sl, u8{16}), set(p, &P::packet_rate, u8{64}),
        set(p, &P::packet_life_time, u8{32}), set(p, &P::remote_cm_response_timeout, u8{32}),
        set(p, &P::local_cm_response_timeout, u8{32}), set(p, &P::max_cm_retries, u8{16}),
        set(p, &P::ece, cm::ECE{.vendor_id = 1u << 24})})
    EXPECT_EQ(a.agent.connect(bad, now), failure(Status::kInvalidArgument));
  request();
  EXPECT_EQ(b.agent.mra(passive, {.service_timeout = 32}), Status::kInvalidArgument);
  EXPECT_EQ(b.agent.accept(passive, {.qpn = QPN{1u << 24}}, now), Status::kInvalidArgument);
  EXPECT_EQ(b.agent.accept(passive, {.rnr_retry_count = 8}, now), Status::kInvalidArgument);
  EXPECT_EQ(b.agent.accept(passive, {.ece = {.vendor_id = 1u << 24}}, now),
            Status::kInvalidArgument);
  EXPECT_EQ(a.agent.sidr_request({.cm_response_timeout = 32}, now),
            failure(Status::kInvalidArgument));
  EXPECT_EQ(a.agent.sidr_request({.max_cm_retries = 16}, now), failure(Status::kInvalidArgument));
}

TEST_F(CMAgentFaultsTest, UnknownIDsAreNotFound) {
  const CommId nobody{12345};
  EXPECT_EQ(a.agent.accept(nobody, {}, now), Status::kNotFound);
  EXPECT_EQ(a.agent.ready_to_use(nobody, {}), Status::kNotFound);
  EXPECT_EQ(a.agent.establish(nobody), Status::kNotFound);
  EXPECT_EQ(a.agent.take_request(nobody), Status::kNotFound);
  EXPECT_EQ(a.agent.mra(nobody, {}), Status::kNotFound);
  EXPECT_EQ(a.agent.reject(nobody, {}, now), Status::kNotFound);
  EXPECT_EQ(a.agent.disconnect(nobody, {}, now), Status::kNotFound);
  EXPECT_EQ(a.agent.reply_disconnect(nobody, {}, now), Status::kNotFound);
  EXPECT_EQ(a.agent.abandon(nobody, now), Status::kNotFound);
  EXPECT_EQ(a.agent.sidr_reply(nobody, {}, now), Status::kNotFound);
  EXPECT_EQ(a.agent.unlisten(ListenerId{99}), Status::kNotFound);
}

TEST_F(CMAgentFaultsTest, MalformedMADsAreDroppedAndCounted) {
  connect();
  const MADOut req = a.mads()[0];
  const auto deliver = [&](std::span<const u8> mad, QPN source_qp) {
    b.agent.on_mad({.source = a.gid, .destination = b.gid, .source_qp = source_qp, .mad = mad},
                   now);
  };
  deliver(std::span(req.mad).first(255), kGSIQPN);
  deliver({}, kGSIQPN);
  deliver(req.mad, QPN{17});  // not a QP 1
  cm::MADBytes get = req.mad;
  get[3] = 0x01;
  deliver(get, kGSIQPN);
  EXPECT_EQ(b.agent.counters().malformed, 4u);
  EXPECT_EQ(b.agent.counters().mads_received, 4u);
  for (const cm::Body& nameless :
       {cm::Body(cm::REQ{.service_id = kService, .path_mtu_code = 3}),
        cm::Body(cm::REP{.remote_comm_id = active}), cm::Body(cm::SIDRREQ{})})
    b.receive(a.gid, nameless, now);  // without an ID
  EXPECT_EQ(b.agent.counters().malformed, 7u);
  EXPECT_EQ(names_of(b.events()), "");
  EXPECT_EQ(names_of(b.mads()), "");
  deliver(req.mad, kGSIQPN);
  EXPECT_EQ(names_of(b.events()), "ConnectRequest");
}

TEST_F(CMAgentFaultsTest, RequestsThatCannotBeServedAreRefusedAtOnce) {
  const auto reason_for = [this](cm::REQ req) {
    req.local_comm_id = CommId{0x999};
    req.service_id = kService;
    b.receive(a.gid, req, now);
    EXPECT_EQ(names_of(b.events()), "");
    const std::vector<MADOut> mads = b.mads();
    EXPECT_EQ(names_of(mads), "REJ");
    return std::get<cm::REJ>(body_of(mads.at(0))).reason;
  };
  using Service = cm::TransportService;
  EXPECT_EQ(reason_for({.transport_service = Service::kRD, .path_mtu_code = 3}),
            cm::RejectReason::kInvalidTransportServiceType);
  EXPECT_EQ(
      reason_for(
          {.transport_service = Service::kExtended, .path_mtu_code = 3, .extended_transport = 2}),
      cm::RejectReason::kInvalidTransportServiceType);
  EXPECT_EQ(reason_for({.path_mtu_code = 0}), cm::RejectReason::kInvalidPathMTU);
  EXPECT_EQ(reason_for({.path_mtu_code = 6}), cm::RejectReason::kInvalidPathMTU);
  EXPECT_EQ(b.agent.connections(), 0u);
}

TEST_F(CMAgentFaultsTest, APeersIDOfAnotherConnectionIsNoReply) {
  establish();
  const CommId taken = passive;
  connect(set(params(), &ConnectParams::qpn, QPN{0x24}));
  (void)a.mads();
  a.receive(b.gid, cm::REP{.local_comm_id = taken, .remote_comm_id = active}, now);
  EXPECT_EQ(names_of(a.events()), "");
  EXPECT_EQ(names_of(a.mads()), "");
}

TEST_F(CMAgentFaultsTest, AlternatePathsAreNotSupported) {
  establish();
  const auto status = [this](CommId theirs) {
    b.receive(a.gid, cm::LAP{.local_comm_id = theirs, .remote_comm_id = passive}, now);
    return std::get<cm::APR>(body_of(b.mads().at(0))).status;
  };
  EXPECT_EQ(status(active), cm::APRStatus::kNotSupported);
  EXPECT_EQ(status(CommId{5}), cm::APRStatus::kInvalidCommunicationID);
}

}  // namespace
}  // namespace verbena
