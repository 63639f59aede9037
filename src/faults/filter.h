// FaultFilter: a stack of rules, and their effect on one packet after the other. Pure: time is an
// argument, all choices come from one seed. The live device and the simulation use the same filter.
//
// The same seed and the same packets of a QP and direction in the same order give the same faults,
// however the QPs interleave. Each QP and direction has random numbers of its own, by the order in
// which the QPs first appear. Rules apply in order; later rules do not see a packet that an earlier
// one drops.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/prng.h"
#include "faults/rule.h"

namespace verbena::faults {

// The fate of a packet.
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
  std::optional<Duration> copy_delay;  // the delay of a second copy
  std::optional<Corruption> corruption;
  std::optional<Answer> answer;  // with `dropped`: to the packet's requester
  const Rule* cause = nullptr;   // the last rule that had an effect

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
  // The state of one rule for one QP and direction.
  struct Flow {
    explicit Flow(u64 seed) : prng(seed) {}
    PRNG prng;
    u64 messages = 0;
    bool is_bad = false;  // BurstLoss
    Time free_at;         // Rate: when the wire is free; Delay: when the last packet arrives
  };
  static constexpr u32 kMaxRepeated = 1 << 16;  // a packet further back begins another connection
  // The state of all rules for one QP and direction.
  struct Sequence {
    u64 ordinal = 0;  // by first appearance
    // The first request that a rule has dropped and that has not passed since. A NAK says that all
    // packets before it have arrived, so no NAK may answer a packet behind the gap. IBTA Vol 1,
    // 9.7.5.2.8
    std::optional<PSN> gap;
    bool gap_is_answered =
        false;                  // the responder ignores later packets until the missing one arrives
    std::optional<PSN> passed;  // the last request that has passed in order
    void note(const PacketInfo& packet, const Verdict& verdict);
    [[nodiscard]] bool has_gap_before(PSN psn) const { return gap && gap->before(psn); }
    // Returns true for a duplicate of an executed request: it is acknowledged again, never refused.
    // IBTA Vol 1, 9.7.4.1.3
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
