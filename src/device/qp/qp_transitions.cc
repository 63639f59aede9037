#include "device/qp/qp_transitions.h"

#include <array>

#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 bit(QPField f) { return static_cast<u32>(f); }
constexpr u32 kCurrent = bit(QPField::kCurrentState);
constexpr u32 kAccess = bit(QPField::kAccessFlags);
constexpr u32 kPKeyIndex = bit(QPField::kPKeyIndex);
constexpr u32 kPort = bit(QPField::kPort);
constexpr u32 kQKey = bit(QPField::kQKey);
constexpr u32 kAV = bit(QPField::kAddressVector);
constexpr u32 kMTU = bit(QPField::kPathMTU);
constexpr u32 kDest = bit(QPField::kDestQPN);
constexpr u32 kRQPSN = bit(QPField::kRQPSN);
constexpr u32 kSQPSN = bit(QPField::kSQPSN);
constexpr u32 kTimeout = bit(QPField::kTimeout);
constexpr u32 kRetry = bit(QPField::kRetryCount) | bit(QPField::kRNRRetry);
constexpr u32 kRdAtomic = bit(QPField::kMaxRdAtomic);
constexpr u32 kDestRdAtomic = bit(QPField::kMaxDestRdAtomic);
constexpr u32 kRNRTimer = bit(QPField::kMinRNRTimer);
constexpr u32 kAlternate = bit(QPField::kAlternatePath);
constexpr u32 kMigration = bit(QPField::kPathMigrationState);
constexpr u32 kNotify = bit(QPField::kEnableSQDNotify);

struct Attributes {
  u32 required = 0, optional = 0;
};
struct Row {
  QPState from, to;
  Attributes rc, uc, ud;
};

// XRC goes by the rules of RC, but each half has only its own attributes: the rest of RC's are
// ignored, as Linux does. Annex A14; a target keeps the timeout.
constexpr u32 kRequesterOnly = kRetry | kRdAtomic;
constexpr u32 kResponderOnly = kDestRdAtomic | kRNRTimer;

constexpr Attributes kNone{};
constexpr std::array kRows = {
    Row{QPState::kReset,
        QPState::kInit,
        {.required = kPKeyIndex | kPort | kAccess},
        {.required = kPKeyIndex | kPort | kAccess},
        {.required = kPKeyIndex | kPort | kQKey}},
    Row{QPState::kInit,
        QPState::kInit,
        {.optional = kPKeyIndex | kPort | kAccess},
        {.optional = kPKeyIndex | kPort | kAccess},
        {.optional = kPKeyIndex | kPort | kQKey}},
    Row{QPState::kInit,
        QPState::kRTR,
        {.required = kAV | kMTU | kDest | kRQPSN | kDestRdAtomic | kRNRTimer,
         .optional = kAlternate | kAccess | kPKeyIndex},
        {.required = kAV | kMTU | kDest | kRQPSN, .optional = kAlternate | kAccess | kPKeyIndex},
        {.optional = kPKeyIndex | kQKey}},
    Row{QPState::kRTR,
        QPState::kRTS,
        {.required = kTimeout | kRetry | kSQPSN | kRdAtomic,
         .optional = kCurrent | kAlternate | kAccess | kRNRTimer | kMigration},
        {.required = kSQPSN, .optional = kCurrent | kAlternate | kAccess | kMigration},
        {.required = kSQPSN, .optional = kCurrent | kQKey}},
    Row{QPState::kRTS,
        QPState::kRTS,
        {.optional = kCurrent | kAlternate | kAccess | kRNRTimer | kMigration},
        {.optional = kCurrent | kAlternate | kAccess | kMigration},
        {.optional = kCurrent | kQKey}},
    Row{QPState::kRTS,
        QPState::kSQD,
        {.optional = kNotify},
        {.optional = kNotify},
        {.optional = kNotify}},
    Row{QPState::kSQD,
        QPState::kRTS,
        {.optional = kCurrent | kAlternate | kAccess | kRNRTimer | kMigration},
        {.optional = kCurrent | kAlternate | kAccess | kMigration},
        {.optional = kCurrent | kQKey}},
    Row{QPState::kSQD,
        QPState::kSQD,
        {.optional = kPort | kAV | kTimeout | kRetry | kRdAtomic | kDestRdAtomic | kAlternate |
                     kAccess | kPKeyIndex | kRNRTimer | kMigration},
        {.optional = kAV | kAlternate | kAccess | kPKeyIndex | kMigration},
        {.optional = kPKeyIndex | kQKey}},
    Row{QPState::kSQE,
        QPState::kRTS,
        kNone,
        {.optional = kCurrent | kAccess},
        {.optional = kCurrent | kQKey}},
};

TransitionRule legal(const Attributes& a) { return {true, a.required, a.optional}; }

TransitionRule legal_without(u32 ignored, const Attributes& a) {
  return {true, a.required & ~ignored, a.optional | (a.required & ignored)};
}

TransitionRule rule_of(QPType type, const Row& row) {
  switch (type) {
    case QPType::kRC: return legal(row.rc);
    case QPType::kXRCInitiator: return legal_without(kResponderOnly, row.rc);
    case QPType::kXRCTarget: return legal_without(kRequesterOnly, row.rc);
    case QPType::kUC: return legal(row.uc);
    case QPType::kUD: return legal(row.ud);
    case QPType::kRawPacket: return {};
  }
  CHECK_UNREACHABLE();
}

}  // namespace

TransitionRule transition_rule(QPType type, QPState from, QPState to) {
  if (to == QPState::kReset) return legal(kNone);
  if (to == QPState::kError && from != QPState::kReset) return legal(kNone);
  for (const Row& row : kRows)
    if (row.from == from && row.to == to) return rule_of(type, row);
  return {};
}

// As Linux's iWARP drivers: Init needs nothing, and the application cannot make the stream.
TransitionRule stream_transition_rule(QPState from, QPState to) {
  if (to == QPState::kReset) return legal(kNone);
  if (to == QPState::kError && from != QPState::kReset) return legal(kNone);
  if (to == QPState::kInit && (from == QPState::kReset || from == QPState::kInit))
    return legal({.optional = kPKeyIndex | kPort | kAccess});
  const bool is_live = from == QPState::kRTS || from == QPState::kSQD;
  if (!is_live || (to != QPState::kRTS && to != QPState::kSQD)) return {};
  return legal({.optional = kCurrent | kAccess | kNotify});
}

bool transition_allowed(QPType type, QPState from, QPState to, u32 fields) {
  return fits(transition_rule(type, from, to), fields);
}

bool fits(const TransitionRule& rule, u32 fields) {
  const u32 known = rule.required | rule.optional | bit(QPField::kState);
  return rule.legal && (fields & rule.required) == rule.required && (fields & ~known) == 0;
}

}  // namespace verbena
