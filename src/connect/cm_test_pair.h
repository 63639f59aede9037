// Pair: two agents, `a` that connects and `b` that listens. The test carries every MAD between them
// by hand and moves the clock. reach() brings one of them into any state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "connect/cm_test_host.h"

namespace verbena::test {

inline constexpr QPN kActiveQPN{0x23}, kPassiveQPN{0x45};

struct Place {  // one end of the connection
  TestHost* host = nullptr;
  TestHost* peer = nullptr;
  CommId id{}, peer_id{};
  QPN qpn{};
};

class Pair {
 public:
  static constexpr u32 kMaxConnections = 8, kMaxListeners = 8;

  Pair() { listener = *b.agent.listen({.service_id = kService, .user = 77}); }

  ConnectParams params() const {
    return {.local_gid = a.gid,
            .remote_gid = b.gid,
            .service_id = kService,
            .qpn = kActiveQPN,
            .starting_psn = PSN{0x111111},
            .max_cm_retries = 2,
            .user = 1};
  }
  void connect(const ConnectParams& p) { active = *a.agent.connect(p, now); }
  void connect() { connect(params()); }
  // Carries all messages of `from`. Returns them, by name.
  std::string carry(TestHost& from, TestHost& to) {
    const std::vector<MADOut> mads = from.mads();
    for (const MADOut& mad : mads) to.receive(mad, now);
    return names_of(mads);
  }
  void request() {
    connect();
    EXPECT_EQ(carry(a, b), "REQ");
    const std::vector<CMEvent> events = b.events();
    ASSERT_EQ(names_of(events), "ConnectRequest");
    passive = events[0].id;
  }
  void accept() {
    ASSERT_EQ(b.agent.accept(passive,
                             {.qpn = kPassiveQPN, .starting_psn = PSN{0x222222}, .user = 2}, now),
              Status::kOk);
  }
  void reply() {
    request();
    accept();
    EXPECT_EQ(carry(b, a), "REP");
    EXPECT_EQ(names_of(a.events()), "ReplyReceived");
  }
  void establish() {
    reply();
    EXPECT_EQ(a.agent.ready_to_use(active, {}), Status::kOk);
    EXPECT_EQ(carry(a, b), "RTU");
    EXPECT_EQ(names_of(b.events()), "Established");
  }
  void disconnect() {
    establish();
    EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kOk);
    EXPECT_EQ(carry(a, b), "DREQ");
    EXPECT_EQ(names_of(b.events()), "Disconnected");
  }
  void sidr_request() {
    active = *a.agent.sidr_request({.local_gid = a.gid,
                                    .remote_gid = b.gid,
                                    .service_id = kService,
                                    .max_cm_retries = 2,
                                    .user = 1},
                                   now);
  }

  // Moves the clock to the next timer of `host`, if it is not there yet, and fires it.
  void fire_timer(TestHost& host) {
    ASSERT_NE(host.agent.next_timer(), Time::never());
    now = std::max(now, host.agent.next_timer());
    host.agent.on_timer(now);
  }
  // Fires all timers of `host`, and loses the messages that it sends. Returns its events, by name.
  std::string let_time_pass(TestHost& host) {
    constexpr int kMaxTimers = 100;
    std::vector<CMEvent> told;
    for (int i = 0; i < kMaxTimers && host.agent.next_timer() != Time::never(); ++i) {
      fire_timer(host);
      (void)host.mads();
      for (const CMEvent& event : host.events()) told.push_back(event);
    }
    return names_of(told);
  }

  // The end of a new connection that is in `state`, with nothing left in the outputs.
  Place reach(CMState state);

  TestHost a{"10.0.0.1", config(3)};
  TestHost b{"10.0.0.2", config(5)};
  ListenerId listener{};
  CommId active{}, passive{};
  Time now = Time() + sec(1);

 private:
  static CMConfig config(u16 slot) {
    return {.process_slot = ProcessSlot{slot},
            .ca_guid = GUID{slot},
            .seed = slot,
            .max_connections = kMaxConnections,
            .max_listeners = kMaxListeners};
  }
  void drain() {
    for (TestHost* host : {&a, &b}) {
      (void)host->mads();
      (void)host->events();
    }
  }
  Place at_a() {
    drain();
    return {.host = &a, .peer = &b, .id = active, .peer_id = passive, .qpn = kActiveQPN};
  }
  Place at_b() {
    drain();
    return {.host = &b, .peer = &a, .id = passive, .peer_id = active, .qpn = kPassiveQPN};
  }
};

inline Place Pair::reach(CMState state) {
  switch (state) {
    case CMState::kREQSent: connect(); return at_a();
    case CMState::kMRAREQReceived:
      request();
      EXPECT_EQ(b.agent.mra(passive, {.when = MRATime::kNow}), Status::kOk);
      carry(b, a);
      return at_a();
    case CMState::kREPReceived: reply(); return at_a();
    case CMState::kMRAREPSent:
      reply();
      EXPECT_EQ(a.agent.mra(active, {}), Status::kOk);
      return at_a();
    case CMState::kREQReceived: request(); return at_b();
    case CMState::kMRAREQSent:
      request();
      EXPECT_EQ(b.agent.mra(passive, {}), Status::kOk);
      return at_b();
    case CMState::kREPSent:
      request();
      accept();
      return at_b();
    case CMState::kMRAREPReceived:
      reply();
      EXPECT_EQ(a.agent.mra(active, {.when = MRATime::kNow}), Status::kOk);
      carry(a, b);
      return at_b();
    case CMState::kEstablished: establish(); return at_a();
    case CMState::kDREQSent:
      establish();
      EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kOk);
      return at_a();
    case CMState::kDREQReceived: disconnect(); return at_b();
    case CMState::kTimeWait:
      disconnect();
      EXPECT_EQ(b.agent.reply_disconnect(passive, {}, now), Status::kOk);
      return at_b();
    case CMState::kRetired:
      request();
      EXPECT_EQ(b.agent.reject(passive, {}, now), Status::kOk);
      return at_b();
    case CMState::kSIDRREQSent: sidr_request(); return at_a();
    case CMState::kSIDRREQReceived: {
      sidr_request();
      carry(a, b);
      const std::vector<CMEvent> events = b.events();
      EXPECT_EQ(names_of(events), "SIDRRequest");
      passive = events.at(0).id;
      return at_b();
    }
  }
  CHECK_UNREACHABLE();
}

inline constexpr std::array kStates = {
    CMState::kREQSent,    CMState::kMRAREQReceived, CMState::kREPReceived,
    CMState::kMRAREPSent, CMState::kREQReceived,    CMState::kMRAREQSent,
    CMState::kREPSent,    CMState::kMRAREPReceived, CMState::kEstablished,
    CMState::kDREQSent,   CMState::kDREQReceived,   CMState::kTimeWait,
    CMState::kRetired,    CMState::kSIDRREQSent,    CMState::kSIDRREQReceived};

inline std::string name_of(CMState state) {
  static constexpr std::array kNames = {
      "REQSent",      "MRAREQReceived", "REPReceived",    "MRAREPSent",  "REQReceived",
      "MRAREQSent",   "REPSent",        "MRAREPReceived", "Established", "DREQSent",
      "DREQReceived", "TimeWait",       "Retired",        "SIDRREQSent", "SIDRREQReceived"};
  return kNames.at(static_cast<std::size_t>(state));
}

}  // namespace verbena::test
