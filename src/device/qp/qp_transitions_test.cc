#include "device/qp/qp_transitions.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <sstream>
#include <string>

#include "device/testing.h"

namespace verbena {
namespace {

using test::kGIDB;
using test::kStart;
using test::Node;
using test::to_state;

constexpr std::array kTypes = {QPType::kRC, QPType::kUC, QPType::kUD};
constexpr std::array kStates = {QPState::kReset, QPState::kInit, QPState::kRTR,  QPState::kRTS,
                                QPState::kSQD,   QPState::kSQE,  QPState::kError};
const std::map<std::string, QPType> kTypeNames = {
    {"RC", QPType::kRC}, {"UC", QPType::kUC}, {"UD", QPType::kUD}};
const std::map<std::string, QPState> kStateNames = {
    {"RESET", QPState::kReset}, {"INIT", QPState::kInit}, {"RTR", QPState::kRTR},
    {"RTS", QPState::kRTS},     {"SQD", QPState::kSQD},   {"SQE", QPState::kSQE}};
const std::map<std::string, QPField> kFieldNames = {
    {"cur_state", QPField::kCurrentState},
    {"sqd_notify", QPField::kEnableSQDNotify},
    {"access", QPField::kAccessFlags},
    {"pkey", QPField::kPKeyIndex},
    {"port", QPField::kPort},
    {"qkey", QPField::kQKey},
    {"av", QPField::kAddressVector},
    {"mtu", QPField::kPathMTU},
    {"timeout", QPField::kTimeout},
    {"retry", QPField::kRetryCount},
    {"rnr_retry", QPField::kRNRRetry},
    {"rq_psn", QPField::kRQPSN},
    {"rd_atomic", QPField::kMaxRdAtomic},
    {"alt", QPField::kAlternatePath},
    {"rnr_timer", QPField::kMinRNRTimer},
    {"sq_psn", QPField::kSQPSN},
    {"dest_rd_atomic", QPField::kMaxDestRdAtomic},
    {"migration", QPField::kPathMigrationState},
    {"cap", QPField::kCapacity},
    {"dest_qpn", QPField::kDestQPN},
    {"rate", QPField::kRateLimit},
};

// Every transition but those to RESET and ERR, which need and take nothing. Written from the tables
// in ibv_modify_qp(3) (required) and IBTA tables 96-98 (optional): type, from, to | required |
// optional
constexpr const char* kTable = R"(
RC RESET INIT | pkey port access |
UC RESET INIT | pkey port access |
UD RESET INIT | pkey port qkey |
RC INIT INIT | | pkey port access
UC INIT INIT | | pkey port access
UD INIT INIT | | pkey port qkey
RC INIT RTR | av mtu dest_qpn rq_psn dest_rd_atomic rnr_timer | alt access pkey
UC INIT RTR | av mtu dest_qpn rq_psn | alt access pkey
UD INIT RTR | | pkey qkey
RC RTR RTS | sq_psn rd_atomic retry rnr_retry timeout | cur_state alt access rnr_timer migration
UC RTR RTS | sq_psn | cur_state alt access migration
UD RTR RTS | sq_psn | cur_state qkey
RC RTS RTS | | cur_state alt access rnr_timer migration
UC RTS RTS | | cur_state alt access migration
UD RTS RTS | | cur_state qkey
RC RTS SQD | | sqd_notify
UC RTS SQD | | sqd_notify
UD RTS SQD | | sqd_notify
RC SQD RTS | | cur_state alt access rnr_timer migration
UC SQD RTS | | cur_state alt access migration
UD SQD RTS | | cur_state qkey
RC SQD SQD | | port av timeout retry rnr_retry rd_atomic dest_rd_atomic alt access pkey rnr_timer migration
UC SQD SQD | | av alt access pkey migration
UD SQD SQD | | pkey qkey
RC SQE RTS | |
UC SQE RTS | | cur_state access
UD SQE RTS | | cur_state qkey
)";

struct Expected {
  bool legal = false;
  u32 required = 0, optional = 0;
};

u32 fields_in(const std::string& words) {
  std::istringstream in(words);
  u32 fields = 0;
  for (std::string word; in >> word;) fields |= static_cast<u32>(kFieldNames.at(word));
  return fields;
}

Expected expected(QPType type, QPState from, QPState to) {
  if (to == QPState::kReset) return {true};
  if (to == QPState::kError) return {from != QPState::kReset};
  std::istringstream table(kTable);
  for (std::string line; std::getline(table, line);) {
    std::istringstream in(line);
    std::string type_name, from_name, to_name, skipped, required, optional;
    if (!(in >> type_name >> from_name >> to_name)) continue;
    std::getline(in, skipped, '|');
    std::getline(in, required, '|');
    std::getline(in, optional);
    if (kTypeNames.at(type_name) == type && kStateNames.at(from_name) == from &&
        kStateNames.at(to_name) == to)
      return {true, fields_in(required), fields_in(optional)};
  }
  return {};
}

// Calls visit(type, from, to) for all 147 triples.
template <typename Visit>
void for_each_triple(Visit visit) {
  for (const QPType type : kTypes)
    for (const QPState from : kStates)
      for (const QPState to : kStates) {
        SCOPED_TRACE(::testing::Message()
                     << "type " << static_cast<int>(type) << " from " << static_cast<int>(from)
                     << " to " << static_cast<int>(to));
        visit(type, from, to);
      }
}

TEST(QPTransitionsTest, EveryTripleWithEveryAttribute) {
  for_each_triple([](QPType type, QPState from, QPState to) {
    const Expected e = expected(type, from, to);
    const u32 state = static_cast<u32>(QPField::kState);
    EXPECT_EQ(transition_allowed(type, from, to, state | e.required), e.legal);
    EXPECT_EQ(transition_allowed(type, from, to, state | e.required | e.optional), e.legal);
    for (u32 bit = 1; bit < 1u << 31; bit <<= 1) {
      if ((e.required & bit) != 0) {
        EXPECT_FALSE(transition_allowed(type, from, to, (state | e.required) & ~bit)) << bit;
        continue;
      }
      const bool may = bit == state || (e.optional & bit) != 0;
      EXPECT_EQ(transition_allowed(type, from, to, state | e.required | bit), e.legal && may)
          << bit;
    }
  });
}

// A14: what one half alone needs is not asked of the other, and ignored where it is given.
TEST(QPTransitionsTest, XRCGoesByTheRulesOfRCWithoutWhatItsOtherHalfNeeds) {
  constexpr auto bit = [](QPField field) { return static_cast<u32>(field); };
  constexpr u32 kInitiators =
      bit(QPField::kRetryCount) | bit(QPField::kRNRRetry) | bit(QPField::kMaxRdAtomic);
  constexpr u32 kTargets = bit(QPField::kMaxDestRdAtomic) | bit(QPField::kMinRNRTimer);
  for (const QPState from : kStates)
    for (const QPState to : kStates) {
      const TransitionRule rc = transition_rule(QPType::kRC, from, to);
      for (const QPType type : {QPType::kXRCInitiator, QPType::kXRCTarget}) {
        const u32 others = type == QPType::kXRCTarget ? kInitiators : kTargets;
        const TransitionRule xrc = transition_rule(type, from, to);
        EXPECT_EQ(rc.legal, xrc.legal);
        EXPECT_EQ(rc.required & ~others, xrc.required);
        EXPECT_EQ(rc.required | rc.optional, xrc.required | xrc.optional);
      }
    }
}

TEST(QPTransitionsTest, RawPacketHasNone) {
  EXPECT_FALSE(transition_rule(QPType::kRawPacket, QPState::kReset, QPState::kInit).legal);
}

// The same through modify_qp, on real QPs.
struct ModifyQPTransitions : ::testing::Test {
  // Returns nullptr if this type of QP never is in that state.
  QueuePair* qp_in(QPType type, QPState state) {
    if (type == QPType::kRC && state == QPState::kSQE) return nullptr;
    QueuePair* const qp = node.create(type);
    if (state == QPState::kReset) return qp;
    modify(qp, test::to_init(type));
    if (state == QPState::kInit) return qp;
    modify(qp, test::to_rtr(type, kGIDB, QPN{9}));
    if (state == QPState::kRTR) return qp;
    modify(qp, test::to_rts(type));
    if (state == QPState::kSQE) fail_a_send(qp);
    if (state == QPState::kSQD || state == QPState::kError) modify(qp, to_state(state));
    EXPECT_EQ(node.state(qp), state);
    return qp;
  }
  void modify(QueuePair* qp, const QPModify& change) {
    ASSERT_EQ(node.device.modify_qp(qp, change, kStart), Status::kOk);
  }
  void fail_a_send(QueuePair* qp) {
    const SGE wrong{0, 8, LKey{0}};
    SendWR wr;
    wr.sg_list = {&wrong, 1};
    wr.destination = test::path_to(kGIDB);
    EXPECT_EQ(node.device.post_send(qp, wr, kStart), PostError::kOk);
    EgressFrame frame;
    EXPECT_FALSE(node.device.poll_frame(kStart, frame));
  }
  // A change with good values for whatever fields it has.
  static QPModify change_to(QPState to, QPState current, u32 fields) {
    QPModify change = to_state(to);
    change.fields |= fields;
    change.current_state = current;
    change.path = test::path_to(test::kGIDB);
    change.ack_timeout = change.min_rnr_timer = 17;
    change.retry_count = change.rnr_retry_count = change.max_rd_atomic = 3;
    change.max_dest_rd_atomic = 5;
    change.dest_qp = QPN{77};
    change.q_key = QKey{78};
    change.rq_psn = PSN{79};
    change.sq_psn = PSN{80};
    return change;
  }
  static auto values(const QPAttributes& a) {
    return std::tuple(a.state, a.path, a.dest_qp, a.path_mtu, a.p_key, a.p_key_index, a.q_key,
                      a.sq_psn, a.rq_psn, a.remote_access, a.port, a.max_rd_atomic,
                      a.max_dest_rd_atomic, a.min_rnr_timer, a.ack_timeout, a.retry_count,
                      a.rnr_retry_count);
  }
  Node node{test::config_at(test::kGIDA, QPN{0x100})};
};

TEST_F(ModifyQPTransitions, EveryTriple) {
  for_each_triple([this](QPType type, QPState from, QPState to) {
    QueuePair* const qp = qp_in(type, from);
    if (qp == nullptr) return;
    const Expected e = expected(type, from, to);
    const auto before = values(node.device.attributes_of(qp));
    const Status status = node.device.modify_qp(qp, change_to(to, from, e.required), kStart);
    EXPECT_EQ(status, e.legal ? Status::kOk : Status::kInvalidArgument);
    if (e.legal)
      EXPECT_EQ(node.state(qp), to);
    else
      EXPECT_EQ(values(node.device.attributes_of(qp)), before);
    EXPECT_EQ(node.device.destroy_qp(qp), Status::kOk);
  });
}

TEST_F(ModifyQPTransitions, AMissingOrForbiddenAttributeChangesNothing) {
  for_each_triple([this](QPType type, QPState from, QPState to) {
    const Expected e = expected(type, from, to);
    QueuePair* const qp = e.legal ? qp_in(type, from) : nullptr;
    if (qp == nullptr) return;
    const auto before = values(node.device.attributes_of(qp));
    for (u32 bit = 2; bit <= static_cast<u32>(QPField::kRateLimit); bit <<= 1) {
      if ((e.optional & bit) != 0) continue;
      const QPModify change = change_to(to, from, e.required ^ bit);
      EXPECT_EQ(node.device.modify_qp(qp, change, kStart), Status::kInvalidArgument) << bit;
      EXPECT_EQ(values(node.device.attributes_of(qp)), before) << bit;
    }
    EXPECT_EQ(node.device.destroy_qp(qp), Status::kOk);
  });
}

TEST_F(ModifyQPTransitions, WithoutTheStateFieldTheStateStays) {
  QueuePair* const qp = qp_in(QPType::kUD, QPState::kRTS);
  QPModify change;
  change.q_key = QKey{5};
  change.set(QPField::kQKey);
  EXPECT_EQ(node.device.modify_qp(qp, change, kStart), Status::kOk);
  EXPECT_EQ(node.device.attributes_of(qp).q_key, QKey{5});
  EXPECT_EQ(node.state(qp), QPState::kRTS);
}

}  // namespace
}  // namespace verbena
