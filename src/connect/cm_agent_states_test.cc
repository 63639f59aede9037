// CMAgent: every call and every message in every state. IBTA Vol 1, 12.9.5 to 12.9.7.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "connect/cm_agent.h"
#include "connect/cm_test_pair.h"

namespace verbena {
namespace {

using test::name_of;
using test::names_of;
using test::Pair;
using test::Place;

struct Call {
  std::string name;
  std::function<Status(CMAgent&, CommId, Time)> make;
};

std::vector<Call> calls() {
  return {
      {"accept", [](CMAgent& a, CommId id, Time now) { return a.accept(id, {}, now); }},
      {"ready_to_use", [](CMAgent& a, CommId id, Time) { return a.ready_to_use(id, {}); }},
      {"establish", [](CMAgent& a, CommId id, Time) { return a.establish(id); }},
      {"mra", [](CMAgent& a, CommId id, Time) { return a.mra(id, {}); }},
      {"reject", [](CMAgent& a, CommId id, Time now) { return a.reject(id, {}, now); }},
      {"disconnect", [](CMAgent& a, CommId id, Time now) { return a.disconnect(id, {}, now); }},
      {"reply_disconnect",
       [](CMAgent& a, CommId id, Time now) { return a.reply_disconnect(id, {}, now); }},
      {"sidr_reply", [](CMAgent& a, CommId id, Time now) { return a.sidr_reply(id, {}, now); }},
  };
}

// The calls that a state allows, and the message that each sends.
std::string allowed_in(CMState state) {
  std::string allowed;
  for (const Call& call : calls()) {
    Pair pair;
    const Place place = pair.reach(state);
    const Status status = call.make(place.host->agent, place.id, pair.now);
    const std::string sent = names_of(place.host->mads());
    EXPECT_EQ(names_of(place.host->events()), "") << call.name;
    if (status == Status::kOk) {
      if (!allowed.empty()) allowed += ", ";
      allowed += call.name;
      if (!sent.empty()) allowed.append(": ").append(sent);
      continue;
    }
    const bool is_done = state == CMState::kEstablished && call.name == "establish";
    EXPECT_EQ(status, is_done                      ? Status::kBusy
                      : state == CMState::kRetired ? Status::kNotFound
                                                   : Status::kInvalidArgument);
    EXPECT_EQ(sent, "") << call.name << " in " << name_of(state);
  }
  return allowed;
}

TEST(CMAgentStatesTest, EachStateAllowsItsCalls) {
  const std::map<CMState, std::string> expected = {
      {CMState::kREQSent, "reject: REJ"},
      {CMState::kMRAREQReceived, "reject: REJ"},
      {CMState::kREPReceived, "ready_to_use: RTU, mra, reject: REJ"},
      {CMState::kMRAREPSent, "ready_to_use: RTU, reject: REJ"},
      {CMState::kREQReceived, "accept: REP, mra, reject: REJ"},
      {CMState::kMRAREQSent, "accept: REP, reject: REJ"},
      {CMState::kREPSent, "establish, reject: REJ"},
      {CMState::kMRAREPReceived, "establish, reject: REJ"},
      {CMState::kEstablished, "disconnect: DREQ"},
      {CMState::kDREQSent, ""},
      {CMState::kDREQReceived, "reply_disconnect: DREP"},
      {CMState::kTimeWait, ""},
      {CMState::kRetired, ""},
      {CMState::kSIDRREQSent, ""},
      {CMState::kSIDRREQReceived, "sidr_reply: SIDR_REP"},
  };
  for (const CMState state : test::kStates)
    EXPECT_EQ(allowed_in(state), expected.at(state)) << name_of(state);
}

// abandon() in each state: the message that it sends; the program receives no further event.
TEST(CMAgentStatesTest, AProgramMayGoAwayInEveryState) {
  const std::map<CMState, std::string> expected = {
      {CMState::kREQSent, "REJ"},       {CMState::kMRAREQReceived, "REJ"},
      {CMState::kREPReceived, "REJ"},   {CMState::kMRAREPSent, "REJ"},
      {CMState::kREQReceived, "REJ"},   {CMState::kMRAREQSent, "REJ"},
      {CMState::kREPSent, "REJ"},       {CMState::kMRAREPReceived, "REJ"},
      {CMState::kEstablished, "DREQ"},  {CMState::kDREQSent, ""},
      {CMState::kDREQReceived, "DREP"}, {CMState::kTimeWait, ""},
      {CMState::kSIDRREQSent, ""},      {CMState::kSIDRREQReceived, "SIDR_REP"},
  };
  for (const auto& [state, sent] : expected) {
    Pair pair;
    const Place place = pair.reach(state);
    EXPECT_EQ(place.host->agent.abandon(place.id, pair.now), Status::kOk) << name_of(state);
    EXPECT_EQ(names_of(place.host->mads()), sent) << name_of(state);
    EXPECT_EQ(place.host->agent.abandon(place.id, pair.now), Status::kNotFound) << name_of(state);
    EXPECT_EQ(pair.let_time_pass(*place.host), "") << name_of(state);
    EXPECT_EQ(place.host->agent.connections(), 0u) << name_of(state);
  }
}

// --- messages

// From the peer of the connection, with the right IDs and QPN.
std::vector<cm::Body> messages_for(const Place& place, CMState state) {
  const bool is_active = state <= CMState::kMRAREPSent;
  const bool waits_for_rep = state == CMState::kREQSent || state == CMState::kMRAREQReceived;
  const CommId ours = place.id;
  const CommId theirs = state == CMState::kREQSent ? CommId{0x999} : place.peer_id;
  return {
      cm::REQ{.local_comm_id = theirs, .service_id = test::kService, .path_mtu_code = 3},
      cm::MRA{.local_comm_id = theirs,
              .remote_comm_id = ours,
              .message_mraed = is_active ? cm::Answered::kREQ : cm::Answered::kREP},
      cm::REJ{.local_comm_id = theirs,
              .remote_comm_id = ours,
              .message_rejected = waits_for_rep ? cm::Answered::kREQ : cm::Answered::kOther,
              .reason = cm::RejectReason::kConsumerReject},
      cm::REP{.local_comm_id = theirs, .remote_comm_id = ours},
      cm::RTU{.local_comm_id = theirs, .remote_comm_id = ours},
      cm::DREQ{.local_comm_id = theirs, .remote_comm_id = ours, .remote_qpn = place.qpn},
      cm::DREP{.local_comm_id = theirs, .remote_comm_id = ours},
      cm::LAP{.local_comm_id = theirs, .remote_comm_id = ours},
      cm::APR{.local_comm_id = theirs, .remote_comm_id = ours},
      cm::SIDRREQ{.request_id = theirs, .service_id = test::kService},
      cm::SIDRREP{.request_id = ours},
  };
}

// The effect of each message in a state: "REP: ReplyReceived" or, with an answer, "DREQ: > DREP".
// Messages without effect are not listed.
std::vector<std::string> effects_in(CMState state) {
  std::vector<std::string> effects;
  for (std::size_t i = 0; i < std::variant_size_v<cm::Body>; ++i) {
    Pair pair;
    const Place place = pair.reach(state);
    const cm::Body message = messages_for(place, state)[i];
    place.host->receive(place.peer->gid, message, pair.now);
    std::string effect = names_of(place.host->events());
    const std::string sent = names_of(place.host->mads());
    if (!sent.empty()) effect.append(effect.empty() ? "> " : " > ").append(sent);
    if (!effect.empty()) effects.push_back(name_of(message).append(": ").append(effect));
  }
  return effects;
}

TEST(CMAgentStatesTest, EachMessageHasItsEffect) {
  using Effects = std::vector<std::string>;
  const std::map<CMState, Effects> expected = {
      {CMState::kREQSent,  // its peer's ID is not known, so a REQ of that ID is a new one
       {"REQ: > REJ", "MRA: ReceiptAcknowledged", "REJ: Rejected", "REP: ReplyReceived",
        "DREQ: > DREP", "LAP: > APR", "SIDR_REQ: > SIDR_REP"}},
      {CMState::kMRAREQReceived,
       {"REQ: > REJ", "REJ: Rejected", "REP: ReplyReceived", "DREQ: > DREP", "LAP: > APR",
        "SIDR_REQ: > SIDR_REP"}},
      {CMState::kREPReceived, {"REJ: Rejected", "DREQ: Disconnected", "LAP: > APR"}},
      {CMState::kMRAREPSent, {"REJ: Rejected", "REP: > MRA", "DREQ: Disconnected", "LAP: > APR"}},
      {CMState::kREQReceived, {"REJ: Rejected", "LAP: > APR"}},
      {CMState::kMRAREQSent, {"REQ: > MRA", "REJ: Rejected", "LAP: > APR"}},
      {CMState::kREPSent,
       {"REQ: > REP", "MRA: ReceiptAcknowledged", "REJ: Rejected", "RTU: Established",
        "DREQ: Disconnected", "LAP: > APR"}},
      {CMState::kMRAREPReceived,
       {"REJ: Rejected", "RTU: Established", "DREQ: Disconnected", "LAP: > APR"}},
      {CMState::kEstablished,
       {"REJ: Disconnected", "REP: > RTU", "DREQ: Disconnected", "LAP: > APR"}},
      {CMState::kDREQSent,
       {"REJ: Disconnected", "DREQ: Disconnected > DREP", "DREP: Disconnected", "LAP: > APR"}},
      {CMState::kDREQReceived, {"LAP: > APR"}},  // a DREQ waits for the program's reply
      {CMState::kTimeWait, {"DREQ: > DREP", "LAP: > APR"}},
      {CMState::kRetired, {"REQ: > REJ", "REP: > REJ", "LAP: > APR"}},
      {CMState::kSIDRREQSent, {"LAP: > APR", "SIDR_REP: SIDRReply"}},
      {CMState::kSIDRREQReceived, {"LAP: > APR"}},
  };
  for (const CMState state : test::kStates)
    EXPECT_EQ(effects_in(state), expected.at(state)) << name_of(state);
}

// The same messages from another sender: no effect on the connection, and no event.
TEST(CMAgentStatesTest, AStrangersMessagesHaveNone) {
  const GID stranger = *GID::parse("10.0.0.99");
  for (const CMState state : test::kStates)
    for (const std::size_t i : {1, 2, 3, 4, 5, 6, 7, 8, 10}) {  // all but REQ and SIDR_REQ
      Pair pair;
      const Place place = pair.reach(state);
      const cm::Body message = messages_for(place, state)[i];
      const Time timer = place.host->agent.next_timer();
      place.host->receive(stranger, message, pair.now);
      EXPECT_EQ(names_of(place.host->events()), "") << name_of(message) << name_of(state);
      EXPECT_EQ(names_of(place.host->mads()), "") << name_of(message) << name_of(state);
      EXPECT_EQ(place.host->agent.next_timer(), timer) << name_of(message) << name_of(state);
      const CMCounters& seen = place.host->agent.counters();
      EXPECT_EQ(seen.foreign + seen.unmatched + seen.malformed, 1u)
          << name_of(message) << name_of(state);
    }
}

// The right peer, but another one of its connections: an answer may end only that other one.
TEST(CMAgentStatesTest, OtherConnectionsOfThePeerAreNotThisOne) {
  for (const CMState state : {CMState::kREPReceived, CMState::kREPSent, CMState::kEstablished,
                              CMState::kDREQSent, CMState::kDREQReceived, CMState::kTimeWait})
    for (const std::size_t i : {1, 2, 3, 4, 5, 6, 7}) {  // those with both IDs
      Pair pair;
      Place place = pair.reach(state);
      place.peer_id = CommId{place.peer_id.value ^ 1};
      const cm::Body message = messages_for(place, state)[i];
      const Time timer = place.host->agent.next_timer();
      place.host->receive(place.peer->gid, message, pair.now);
      EXPECT_EQ(names_of(place.host->events()), "") << name_of(message) << name_of(state);
      EXPECT_EQ(place.host->agent.next_timer(), timer) << name_of(message) << name_of(state);
    }
}

}  // namespace
}  // namespace verbena
