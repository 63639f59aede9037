// FaultFilter: a stack of rules, and what they do to one packet after the other. Pure: time is an
// argument, all choices come from one seed. The live device and the simulation use this one.
//
// Same seed and same packets of a QP and direction in the same order: same faults, however the QPs
// interleave; each has random numbers of its own, by the order in which the QPs first appear.
// Rules apply in order; a packet that one of them drops is not shown to those after it.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/prng.h"
#include "faults/rule.h"

namespace verbena::faults {

// What becomes of a packet.
struct Verdict {
  struct Corruption {
    u32 bits = 1;
    bool good_icrc = false;
    u64 seed = 0;  // of the places
  };
  struct Answer {
    AETHKind kind = AETHKind::kNAK;
    u8 value = 0;
  };
  bool dropped = false;
  bool marked = false;
  bool breaks_qp = false, overruns_cq = false;
  Duration delay{};
  std::optional<Duration> copy_delay;  // a second copy, so late
  std::optional<Corruption> corruption;
  std::optional<Answer> answer;  // with `dropped`: to the packet's requester
  const Rule* cause = nullptr;   // the last rule that did something

  [[nodiscard]] bool is_untouched() const { return cause == nullptr; }
};

struct RuleCounters {
  u64 selected = 0, applied = 0;  // packets, or registrations
};

class FaultFilter {
 public:
  FaultFilter(std::vector<Rule> rules, u64 seed, Time start);

  [[nodiscard]] Verdict judge(const PacketInfo& packet, Time now);
  [[nodiscard]] bool refuses_registration(Time now);

  [[nodiscard]] std::span<const Rule> rules() const { return rules_; }
  [[nodiscard]] std::span<const RuleCounters> counters() const { return counters_; }

 private:
  // One rule's memory of one QP and direction.
  struct Flow {
    explicit Flow(u64 seed) : prng(seed) {}
    PRNG prng;
    u64 messages = 0;
    bool is_bad = false;  // BurstLoss
    Time free_at;         // Rate: when the wire is; Delay: when the last packet comes
  };
  static constexpr u32 kMaxRepeated = 1 << 16;  // further back begins another connection
  // What all rules know of one QP and direction.
  struct Sequence {
    u64 ordinal = 0;  // by first appearance
    // The first request that a rule has dropped and that has not passed since. A NAK says that all
    // before it has come, so of those behind it none may be answered. IBTA Vol 1, 9.7.5.2.8
    std::optional<PSN> gap;
    bool gap_is_answered = false;  // the responder ignores what follows, until it comes again
    std::optional<PSN> passed;     // the last request that has passed in order
    void note(const PacketInfo& packet, const Verdict& verdict);
    [[nodiscard]] bool has_gap_before(PSN psn) const { return gap && gap->before(psn); }
    // A duplicate of one that was executed: acknowledged again, never refused. IBTA Vol
    // 1, 9.7.4.1.3
    [[nodiscard]] bool has_passed(PSN psn) const {
      return passed && psn.distance_to(*passed) < kMaxRepeated;
    }
  };
  struct Apply;

  bool selects(std::size_t rule, const PacketInfo& packet, const Flow& flow, Time now);
  bool is_now(const Selector& selector, Time now) const;
  bool is_turn(std::size_t rule);
  Flow& flow_of(std::size_t rule, u64 key, const Sequence& sequence);
  Sequence& sequence_of(u64 key);

  const std::vector<Rule> rules_;
  const u64 seed_;
  const Time start_;
  std::vector<RuleCounters> counters_;
  std::vector<std::unordered_map<u64, Flow>> flows_;  // by rule, then flow
  std::unordered_map<u64, Sequence> sequences_;
  PRNG registrations_;
};

}  // namespace verbena::faults
