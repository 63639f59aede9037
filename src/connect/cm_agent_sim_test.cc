// CMAgents in a simulated world: hosts that connect to each other, over a link that loses, repeats,
// delays and reorders MADs, with programs that accept, refuse, wait, go away, and hosts that die
// and come back. One seed drives everything; SIM_SEED=<n> replays one, SIM_SEEDS=<n> runs so many.
//
// Checked for every connection on every host: its events come in an order that the contract allows
// (so it has one outcome), an RTU comes only from a peer that was ready, everything ends in bounded
// time, and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "connect/cm_agent.h"
#include "connect/cm_test_host.h"

namespace verbena {
namespace {

using test::name_of;
using test::TestHost;

constexpr u32 kQPNsUsedAgain = 2;
constexpr Time kEnd = Time() + sec(3600);  // all must be over by then

struct Plan {
  u32 hosts = 2;
  u32 connects = 4;  // in all
  u64 min_retries = 0;
  double loss = 0;
  double repeat = 0;        // that a MAD comes once more, up to a minute later
  Duration jitter = ms(1);  // MADs that are that close may overtake each other
  double slow = 0;          // that a MAD takes up to 10 s
  double refuse = 0;        // that a program says no, or goes away
  u32 deaths = 0;           // hosts that die; half of them come back
  double together = 0;      // that the peer connects or disconnects in the same moment
};

// A program's knowledge of one connection, and so the events that may follow.
enum class Phase : u8 {
  kAsked,        // connect()
  kReplied,      // ReplyReceived
  kRequested,    // ConnectRequest
  kAccepted,     // accept()
  kUp,           // ready_to_use(), or Established
  kClosing,      // disconnect()
  kToReply,      // Disconnected, kRequested
  kReleased,     // Disconnected, or reply_disconnect()
  kSIDRAsked,    // sidr_request()
  kSIDRAskedOf,  // SIDRRequest
  kOver,
};

struct Connection {
  Phase phase = Phase::kAsked;
  bool was_ready = false;
  CommId peer_id{};
  QPN qpn{}, peer_qpn{};
};

struct Program {
  std::unique_ptr<TestHost> host;  // nullptr: dead
  u32 generation = 0;              // counts lives
  u32 next_qpn = 0x10;             // a new life uses the latest again
  u32 last_peer = 0;
  std::map<u32, Connection> connections;
};

struct Happening {
  enum class Kind : u8 { kMAD, kTimer, kConnect, kAct, kDie, kRevive } kind = Kind::kTimer;
  u32 host = 0;
  u32 generation = 0;
  MADOut mad{};
  CommId id{};
  std::optional<u32> peer{};  // to connect to
};

class World {
 public:
  World(u64 seed, const Plan& plan) : plan_(plan), prng_(seed), programs_(plan.hosts) {
    for (u32 i = 0; i < plan.hosts; ++i) revive(i);
    for (u32 i = 0; i < plan.connects; ++i)
      at(within(sec(20)), {.kind = Happening::Kind::kConnect, .host = any_host()});
    for (u32 i = 0; i < plan.deaths; ++i)
      at(within(sec(20)), {.kind = Happening::Kind::kDie, .host = any_host()});
  }

  void run() {
    while (!queue_.empty() && now_ < kEnd) {
      const auto it = queue_.begin();
      now_ = it->first.first;
      const Happening happening = it->second;
      queue_.erase(it);
      handle(happening);
    }
  }

  // All connections have ended on all hosts.
  void expect_nothing_left() {
    EXPECT_LT(now_, kEnd);
    for (Program& program : programs_) {
      if (!program.host) continue;
      EXPECT_EQ(program.host->agent.connections(), 0u);
      EXPECT_EQ(program.host->agent.next_timer(), Time::never());
      for (const auto& [id, connection] : program.connections)
        EXPECT_EQ(connection.phase, Phase::kOver) << id;
    }
  }

  // Every MAD that was ever sent comes once more, and nobody listens any longer.
  void replay_everything() {
    for (u32 i = 0; i < programs_.size(); ++i) {
      if (!programs_[i].host) continue;
      TestHost& host = *programs_[i].host;
      EXPECT_EQ(host.agent.unlisten(ListenerId{1}), Status::kOk);
      for (const MADOut& mad : sent_) {
        if (mad.destination != host.gid) continue;
        host.receive(mad, now_);
        EXPECT_TRUE(host.events().empty());
        (void)host.mads();
      }
      EXPECT_EQ(host.agent.connections(), 0u);
    }
  }

  u64 trace() const { return trace_; }
  const std::map<std::string, u64>& seen() const { return seen_; }

 private:
  u32 any_host() { return static_cast<u32>(prng_.below(plan_.hosts)); }
  Duration within(Duration longest) {
    return ps(static_cast<i64>(prng_.below(static_cast<u64>(longest.ps()))));
  }
  void at(Duration from_now, Happening happening) {
    happening.generation = programs_[happening.host].generation;
    queue_.emplace(std::pair(now_ + from_now, next_++), happening);
  }
  static GID gid_of(u32 host) { return GID::from_ipv4(0x0a000001 + host); }
  void note(const std::string& what) {
    ++seen_[what];
    for (const char c : what) trace_ = (trace_ ^ static_cast<u8>(c)) * 0x100000001b3;
    trace_ = (trace_ ^ static_cast<u64>(now_.ps())) * 0x100000001b3;
  }

  void revive(u32 i) {
    Program& program = programs_[i];
    ++program.generation;
    program.next_qpn -= std::min(program.next_qpn - 0x10, kQPNsUsedAgain);
    program.host = std::make_unique<TestHost>(
        gid_of(i).to_string().c_str(), CMConfig{.process_slot = ProcessSlot{static_cast<u16>(i)},
                                                .ca_guid = GUID{i},
                                                .seed = prng_.next(),
                                                .max_connections = 64,
                                                .max_listeners = 4});
    EXPECT_TRUE(program.host->agent.listen({.service_id = test::kService}).has_value());
  }

  void handle(const Happening& happening) {
    Program& program = programs_[happening.host];
    const bool is_mad = happening.kind == Happening::Kind::kMAD;  // the wire knows no generations
    if (!is_mad && happening.generation != program.generation) return;
    if (happening.kind == Happening::Kind::kRevive) {
      revive(happening.host);
      for (u32 i = 0; i < kQPNsUsedAgain; ++i)  // connects again, as a restarted program does
        at(within(ms(100)), {.kind = Happening::Kind::kConnect, .host = happening.host});
      return;
    }
    if (!program.host) return;
    switch (happening.kind) {
      case Happening::Kind::kMAD: program.host->receive(happening.mad, now_); break;
      case Happening::Kind::kTimer: program.host->agent.on_timer(now_); break;
      case Happening::Kind::kConnect: connect(happening.host, happening.peer); break;
      case Happening::Kind::kAct: act(happening.host, happening.id); break;
      case Happening::Kind::kDie: return die(happening.host);
      case Happening::Kind::kRevive: break;
    }
    drain(happening.host);
  }

  void die(u32 i) {
    note("death");
    programs_[i].host.reset();
    programs_[i].connections.clear();
    if (prng_.chance(0.5)) at(within(sec(2)), {.kind = Happening::Kind::kRevive, .host = i});
  }

  void drain(u32 i) {
    TestHost& host = *programs_[i].host;
    for (const CMEvent& event : host.events()) {
      note(name_of(event));
      tell(i, event);
    }
    for (const MADOut& mad : host.mads()) carry(mad);
    if (host.agent.next_timer() != Time::never()) {
      const Duration wait = std::max(host.agent.next_timer() - now_, Duration());
      at(wait, {.kind = Happening::Kind::kTimer, .host = i});
    }
  }

  void carry(const MADOut& mad) {
    note(name_of(test::body_of(mad)));
    sent_.push_back(mad);
    Happening happening{.kind = Happening::Kind::kMAD,
                        .host = mad.destination.ipv4() - gid_of(0).ipv4(),
                        .mad = mad};
    if (prng_.chance(plan_.repeat)) at(within(sec(60)), happening);
    if (prng_.chance(plan_.loss)) return;
    at(us(100) + within(prng_.chance(plan_.slow) ? sec(10) : plan_.jitter), happening);
  }

  // --- the programs

  void connect(u32 i, std::optional<u32> wanted) {
    Program& program = programs_[i];
    const u32 other = prng_.chance(0.5) ? program.last_peer : any_host();  // oneself included
    const u32 peer = wanted.value_or(other);
    program.last_peer = peer;
    if (!wanted && prng_.chance(plan_.together)) {
      note("both connect");
      at(Duration(), {.kind = Happening::Kind::kConnect, .host = peer, .peer = i});
    }
    const u8 retries = static_cast<u8>(prng_.in(plan_.min_retries, 15));
    if (prng_.chance(0.2)) {
      const CommId id = *program.host->agent.sidr_request({.local_gid = gid_of(i),
                                                           .remote_gid = gid_of(peer),
                                                           .service_id = test::kService,
                                                           .max_cm_retries = retries},
                                                          now_);
      program.connections[id.value] = {.phase = Phase::kSIDRAsked};
      return;
    }
    const QPN qpn{program.next_qpn++};
    const CommId id = *program.host->agent.connect({.local_gid = gid_of(i),
                                                    .remote_gid = gid_of(peer),
                                                    .service_id = test::kService,
                                                    .qpn = qpn,
                                                    .max_cm_retries = retries},
                                                   now_);
    program.connections[id.value] = {.phase = Phase::kAsked, .qpn = qpn};
    if (prng_.chance(plan_.refuse)) act_soon(i, id);  // to change its mind
  }

  // The peer takes its next step, which may be to disconnect too.
  void act_together(CommId id, const Connection& c) {
    for (u32 i = 0; i < programs_.size(); ++i) {
      const auto it = programs_[i].connections.find(c.peer_id.value);
      if (it == programs_[i].connections.end() || it->second.peer_id != id) continue;
      if (it->second.phase == Phase::kUp) note("both disconnect");
      at(Duration(), {.kind = Happening::Kind::kAct, .host = i, .id = c.peer_id});
    }
  }

  void act_soon(u32 i, CommId id) {
    at(within(prng_.chance(0.3) ? sec(15) : ms(100)),
       {.kind = Happening::Kind::kAct, .host = i, .id = id});
  }

  // The next step of a program with a connection.
  void act(u32 i, CommId id) {
    Program& program = programs_[i];
    CMAgent& agent = program.host->agent;
    Connection& c = program.connections.at(id.value);
    if (c.phase == Phase::kOver || c.phase == Phase::kReleased || c.phase == Phase::kClosing)
      return;
    if (prng_.chance(plan_.refuse / 2)) {
      EXPECT_EQ(agent.abandon(id, now_), Status::kOk);
      c.phase = Phase::kOver;
      return note("abandon");
    }
    const bool may_refuse = c.phase <= Phase::kAccepted;
    if (may_refuse && prng_.chance(plan_.refuse)) {
      EXPECT_EQ(agent.reject(id, {}, now_), Status::kOk);
      c.phase = Phase::kOver;
      return note("reject");
    }
    go_on(i, id, c);
  }

  void go_on(u32 i, CommId id, Connection& c) {
    CMAgent& agent = programs_[i].host->agent;
    const MRAParams wait{.service_timeout = static_cast<u8>(prng_.in(8, 20)),
                         .when = prng_.chance(0.5) ? MRATime::kNow : MRATime::kOnDuplicate};
    const bool may_wait = c.phase == Phase::kReplied || c.phase == Phase::kRequested;
    if (may_wait && prng_.chance(0.1) && agent.mra(id, wait) == Status::kOk) return act_soon(i, id);
    switch (c.phase) {
      case Phase::kRequested:
        c.qpn = QPN{programs_[i].next_qpn++};
        EXPECT_EQ(agent.accept(id, {.qpn = c.qpn}, now_), Status::kOk);
        c.phase = Phase::kAccepted;
        return;
      case Phase::kReplied:
        EXPECT_EQ(agent.ready_to_use(id, {}), Status::kOk);
        c.phase = Phase::kUp;
        c.was_ready = true;
        return act_soon(i, id);
      case Phase::kUp:
        EXPECT_EQ(agent.disconnect(id, {}, now_), Status::kOk);
        c.phase = Phase::kClosing;
        if (prng_.chance(plan_.together)) act_together(id, c);
        return;
      case Phase::kToReply:
        EXPECT_EQ(agent.reply_disconnect(id, {}, now_), Status::kOk);
        c.phase = Phase::kReleased;
        return;
      case Phase::kSIDRAskedOf:
        EXPECT_EQ(agent.sidr_reply(id, {.qpn = QPN{1}}, now_), Status::kOk);
        c.phase = Phase::kOver;
        return;
      case Phase::kAsked:
      case Phase::kAccepted:
      case Phase::kClosing:
      case Phase::kReleased:
      case Phase::kSIDRAsked:
      case Phase::kOver: return;
    }
  }

  // --- events that the contract allows

  struct Teller {
    World& world;
    u32 host;
    CommId id;
    Connection& c;

    void expect(const std::set<Phase>& allowed) const {
      EXPECT_TRUE(allowed.contains(c.phase)) << static_cast<int>(c.phase);
    }
    void soon(Phase phase) const {
      c.phase = phase;
      world.act_soon(host, id);
    }
    void operator()(const ConnectRequest& e) const {
      c.peer_id = e.req.local_comm_id;
      c.peer_qpn = e.req.local_qpn;
      soon(Phase::kRequested);
    }
    void operator()(const ReplyReceived& e) const {
      expect({Phase::kAsked});
      c.peer_id = e.rep.local_comm_id;
      c.peer_qpn = e.rep.local_qpn;
      soon(Phase::kReplied);
    }
    void operator()(const ReceiptAcknowledged&) const { expect({Phase::kAsked, Phase::kAccepted}); }
    void operator()(const Established& e) const {
      expect({Phase::kAccepted});
      EXPECT_EQ(e.rtu.local_comm_id, c.peer_id);
      world.expect_peer_was_ready(host, id, c);
      soon(Phase::kUp);
    }
    void operator()(const Rejected&) const {
      expect({Phase::kAsked, Phase::kReplied, Phase::kRequested, Phase::kAccepted});
      c.phase = Phase::kOver;
    }
    void operator()(const Unreachable& e) const {
      switch (e.what) {
        case Unanswered::kREQ: expect({Phase::kAsked}); break;
        case Unanswered::kREP: expect({Phase::kAccepted}); break;
        case Unanswered::kSIDRREQ: expect({Phase::kSIDRAsked}); break;
      }
      c.phase = Phase::kOver;
    }
    void operator()(const Disconnected& e) const {
      expect({Phase::kReplied, Phase::kAccepted, Phase::kUp, Phase::kClosing});
      world.note("cause " + std::to_string(static_cast<int>(e.cause)));
      if (e.cause == DisconnectCause::kRequested)
        soon(Phase::kToReply);
      else
        c.phase = Phase::kReleased;
    }
    void operator()(const TimeWaitExit&) const {
      expect({Phase::kReleased});
      c.phase = Phase::kOver;
    }
    void operator()(const SIDRRequest&) const { soon(Phase::kSIDRAskedOf); }
    // iWARP has these events; a CMAgent does not.
    void operator()(const StreamEstablished&) const { expect({}); }
    void operator()(const StreamRefused&) const { expect({}); }
    void operator()(const StreamEnded&) const { expect({}); }
    void operator()(const SIDRReply&) const {
      expect({Phase::kSIDRAsked});
      c.phase = Phase::kOver;
    }
  };

  void tell(u32 i, const CMEvent& event) {
    Program& program = programs_[i];
    const bool is_new = std::holds_alternative<ConnectRequest>(event.what) ||
                        std::holds_alternative<SIDRRequest>(event.what);
    const auto it = program.connections.find(event.id.value);
    const bool is_known = it != program.connections.end() && it->second.phase != Phase::kOver;
    ASSERT_EQ(is_known, !is_new) << name_of(event);
    if (is_new) program.connections[event.id.value] = {};
    std::visit(Teller{*this, i, event.id, program.connections[event.id.value]}, event.what);
  }

  // Only a peer that had our REP and was ready sends an RTU. A peer that has died since is not
  // asked.
  void expect_peer_was_ready(u32 host, CommId id, const Connection& c) {
    for (const Program& program : programs_) {
      const auto it = program.connections.find(c.peer_id.value);
      if (it == program.connections.end()) continue;
      if (it->second.peer_id != id || it->second.peer_qpn != c.qpn) continue;
      EXPECT_TRUE(it->second.was_ready);
      EXPECT_EQ(it->second.qpn, c.peer_qpn);
      return;
    }
    EXPECT_GT(plan_.deaths, 0u) << "host " << host;
  }

  const Plan plan_;
  PRNG prng_;
  Time now_;
  u64 next_ = 0;
  std::map<std::pair<Time, u64>, Happening> queue_;
  std::vector<Program> programs_;
  std::vector<MADOut> sent_;
  std::map<std::string, u64> seen_;
  u64 trace_ = 0xcbf29ce484222325;
};

Plan plan_for(u64 seed) {
  PRNG prng(seed ^ 0x9e3779b97f4a7c15);
  return {.hosts = static_cast<u32>(prng.in(2, 4)),
          .connects = static_cast<u32>(prng.in(1, 12)),
          .loss = prng.chance(0.8) ? 0.05 * static_cast<double>(prng.in(1, 9)) : 0,
          .repeat = prng.chance(0.5) ? 0.2 : 0,
          .slow = prng.chance(0.5) ? 0.1 : 0,
          .refuse = prng.chance(0.5) ? 0.2 : 0,
          .deaths = prng.chance(0.4) ? static_cast<u32>(prng.in(1, 3)) : 0,
          .together = prng.chance(0.5) ? 0.5 : 0};
}

u64 number_from(const char* variable, u64 otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(CMAgentSimTest, EverythingEndsAndNothingIsLeft) {
  const u64 only = number_from("SIM_SEED", 0);
  const u64 first = only != 0 ? only : 1;
  const u64 last = only != 0 ? only : number_from("SIM_SEEDS", VERBENA_SIM_SEEDS);
  std::map<std::string, u64> seen;
  for (u64 seed = first; seed <= last; ++seed) {
    World world(seed, plan_for(seed));
    world.run();
    world.expect_nothing_left();
    world.replay_everything();
    ASSERT_FALSE(HasFailure()) << "SIM_SEED=" << seed;
    for (const auto& [what, times] : world.seen()) seen[what] += times;
  }
  constexpr u64 kEnoughSeeds = 300;  // cause 5 is in none of the first 250
  if (last - first + 1 < kEnoughSeeds) return;
  for (const char* what :  // that the seeds have been everywhere
       {"REQ",           "MRA",
        "REJ",           "REP",
        "RTU",           "DREQ",
        "DREP",          "SIDR_REQ",
        "SIDR_REP",      "ConnectRequest",
        "ReplyReceived", "ReceiptAcknowledged",
        "Established",   "Rejected",
        "Unreachable",   "Disconnected",
        "TimeWaitExit",  "SIDRRequest",
        "SIDRReply",     "abandon",
        "reject",        "death",
        "cause 0",       "cause 1",
        "cause 2",       "cause 3",
        "cause 4",       "cause 5",
        "both connect",  "both disconnect"})
    EXPECT_GT(seen[what], 0u) << what;
}

TEST(CMAgentSimTest, WithoutFaultsEveryConnectIsEstablished) {
  for (u64 seed = 1; seed <= 50; ++seed) {
    World world(seed, {.hosts = 3, .connects = 20, .min_retries = 15, .jitter = ps(0)});
    world.run();
    world.expect_nothing_left();
    std::map<std::string, u64> seen = world.seen();
    EXPECT_EQ(seen["Established"], seen["ReplyReceived"]) << seed;
    EXPECT_EQ(seen["Established"] + seen["SIDRReply"], 20u) << seed;
    EXPECT_EQ(seen["Unreachable"] + seen["Rejected"], 0u) << seed;
  }
}

// REQs, and later DREQs, cross in flight: two connections, both complete.
TEST(CMAgentSimTest, BothConnectAndDisconnectAtOnce) {
  std::map<std::string, u64> seen;
  for (u64 seed = 1; seed <= 100; ++seed) {
    const bool lossy = seed % 2 == 0;
    World world(seed, {.hosts = 2,
                       .connects = 6,
                       .min_retries = 15,
                       .loss = lossy ? 0.2 : 0,
                       .repeat = lossy ? 0.3 : 0,
                       .slow = lossy ? 0.1 : 0,
                       .together = 1});
    world.run();
    world.expect_nothing_left();
    world.replay_everything();
    ASSERT_FALSE(HasFailure()) << seed;
    for (const auto& [what, times] : world.seen()) seen[what] += times;
    if (lossy) continue;
    std::map<std::string, u64> here = world.seen();
    EXPECT_EQ(here["Established"], here["ReplyReceived"]) << seed;
    EXPECT_EQ(here["Established"] + here["SIDRReply"], 12u) << seed;
    EXPECT_EQ(here["Unreachable"] + here["Rejected"], 0u) << seed;
  }
  EXPECT_GT(seen["both disconnect"], 100u);
}

TEST(CMAgentSimTest, TheSameSeedIsTheSameRun) {
  for (u64 seed = 1; seed <= 20; ++seed) {
    World once(seed, plan_for(seed)), again(seed, plan_for(seed));
    once.run();
    again.run();
    EXPECT_EQ(once.trace(), again.trace()) << seed;
  }
}

// Random messages from random senders: nothing breaks, and all that they begin ends in time.
TEST(CMAgentSimTest, RandomMADsAreHarmless) {
  for (u64 seed = 1; seed <= 20; ++seed) {
    PRNG prng(seed);
    TestHost host("10.0.0.1", {.seed = seed, .max_connections = 32});
    ASSERT_TRUE(host.agent.listen({.service_id = test::kService, .backlog = 8}).has_value());
    std::vector<CommId> ids;
    Time now;
    for (int i = 0; i < 2000; ++i) {
      now = now + ms(static_cast<i64>(prng.below(500)));
      MADOut mad{.source = GID::from_ipv4(0x0a000002), .destination = host.gid};
      for (u8& byte : mad.mad) byte = prng.chance(0.5) ? u8{0} : static_cast<u8>(prng.next());
      const cm::MADBytes good = cm::Message{.body = cm::REQ{.service_id = test::kService}}.encode();
      std::copy_n(good.begin(), MADHeader::kSize, mad.mad.begin());
      mad.mad[17] = static_cast<u8>(prng.in(0x0f, 0x1b));  // any message, and two that are none
      if (prng.chance(0.5)) std::copy_n(good.begin() + 32, 8, mad.mad.begin() + 32);
      if (prng.chance(0.7) && !ids.empty())
        store_be32(&mad.mad[28], ids[prng.below(ids.size())].value);
      host.receive(mad, now);
      host.agent.on_timer(now);
      (void)host.mads();
      for (const CMEvent& event : host.events()) {
        ids.push_back(event.id);
        (void)host.agent.accept(event.id, {.qpn = QPN{1}}, now);
        (void)host.agent.reply_disconnect(event.id, {}, now);
      }
      if (prng.chance(0.05)) {
        const auto id = host.agent.connect({.remote_gid = mad.source, .max_cm_retries = 1}, now);
        if (id.has_value()) ids.push_back(*id);
      }
    }
    for (const CommId id : ids) (void)host.agent.abandon(id, now);
    while (host.agent.next_timer() != Time::never()) {
      now = host.agent.next_timer();
      host.agent.on_timer(now);
      (void)host.mads();
      (void)host.events();
    }
    EXPECT_EQ(host.agent.connections(), 0u) << seed;
  }
}

}  // namespace
}  // namespace verbena
