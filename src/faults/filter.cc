#include "faults/filter.h"

#include <algorithm>

#include "wire/roce/overhead.h"

namespace verbena::faults {
namespace {

constexpr u64 kRuleStride = 0x9e3779b97f4a7c15, kFlowStride = 0xbf58476d1ce4e5b9;

u64 key_of(const PacketInfo& packet) {
  return u64{packet.local_qp.value} << 1 | (packet.direction == Direction::kReceive ? 1 : 0);
}

bool is_reliable_request(Opcode opcode) {
  return traits_of(opcode).request &&
         (opcode.service == Service::kRC || opcode.service == Service::kXRC);
}

Duration up_to(Duration most, PRNG& prng) {
  return most == Duration{} ? most : ps(static_cast<i64>(prng.in(1, static_cast<u64>(most.ps()))));
}

Duration on_wire(std::size_t bytes, i64 bits_per_second) {
  const __int128 bits = (static_cast<__int128>(bytes) + kWireOverheadBytes) * 8;
  return ps(static_cast<i64>(bits * 1'000'000'000'000 / bits_per_second));
}

}  // namespace

FaultFilter::FaultFilter(std::vector<Rule> rules, u64 seed, Time start)
    : rules_(std::move(rules)),
      seed_(seed),
      start_(start),
      counters_(rules_.size()),
      flows_(rules_.size()),
      registrations_(~seed) {}

// Applies one rule to one packet. Returns true if it had an effect.
struct FaultFilter::Apply {
  const PacketInfo& packet;
  Flow& flow;
  const Sequence& sequence;
  Time now, start;
  Verdict& verdict;

  bool drop_if(bool dropped) const { return verdict.dropped = dropped; }

  bool operator()(const Loss& loss) const { return drop_if(flow.prng.chance(loss.probability)); }
  bool operator()(const BurstLoss& burst) const {
    if (flow.prng.chance(flow.is_bad ? burst.leave : burst.enter)) flow.is_bad = !flow.is_bad;
    return drop_if(flow.prng.chance(flow.is_bad ? burst.inside : burst.outside));
  }
  bool operator()(const Reorder& reorder) const {
    if (!flow.prng.chance(reorder.probability)) return false;
    verdict.delay = verdict.delay + up_to(reorder.by, flow.prng);
    return true;
  }
  bool operator()(const Duplicate& duplicate) const {
    if (!flow.prng.chance(duplicate.probability)) return false;
    verdict.copy_delay = verdict.delay + up_to(duplicate.by, flow.prng);
    return true;
  }
  bool operator()(const Delay& delay) const {
    const Time wanted = now + verdict.delay + delay.by + up_to(delay.jitter, flow.prng);
    flow.free_at = std::max(flow.free_at, wanted);
    verdict.delay = flow.free_at - now;
    return true;
  }
  bool operator()(const Corrupt& corrupt) const {
    if (!flow.prng.chance(corrupt.probability)) return false;
    verdict.corruption = {corrupt.bits, corrupt.good_icrc, flow.prng.next()};
    return true;
  }
  bool operator()(const Rate& rate) const {
    const Time begins = std::max(flow.free_at, now + verdict.delay);
    if (begins - now > rate.queue) return drop_if(true);
    flow.free_at = begins + on_wire(packet.size_bytes, rate.bits_per_second);
    verdict.delay = flow.free_at - now;
    return true;
  }
  bool operator()(const Mark& mark) const {
    if (!flow.prng.chance(mark.probability)) return false;
    return verdict.marked = true;
  }
  bool operator()(const Blackhole&) const { return drop_if(true); }
  bool operator()(const Flap& flap) const {
    const i64 period = (flap.up + flap.down).ps();
    return drop_if((now - start).ps() % period >= flap.up.ps());
  }
  bool operator()(const Refuse& refuse) const {
    if (sequence.has_passed(packet.psn)) return false;
    if (sequence.has_gap_before(packet.psn)) return drop_if(sequence.gap_is_answered);
    if (!flow.prng.chance(refuse.probability)) return false;
    verdict.answer = {refuse.kind, refuse.value};
    return drop_if(true);
  }
  bool operator()(const BreakQP&) const { return verdict.breaks_qp = true; }
  bool operator()(const OverrunCQ&) const { return verdict.overruns_cq = true; }
  bool operator()(const RefuseRegistration&) const { return false; }
};

Verdict FaultFilter::judge(const PacketInfo& packet, Time now) {
  Verdict verdict;
  const u64 key = key_of(packet);
  Sequence& sequence = sequence_of(key);
  for (std::size_t i = 0; i < rules_.size() && !verdict.dropped; ++i) {
    const Rule& rule = rules_[i];
    if (std::holds_alternative<RefuseRegistration>(rule.action)) continue;
    Flow& flow = flow_of(i, key, sequence);
    if (traits_of(packet.opcode).first) ++flow.messages;
    if (!selects(i, packet, flow, now) || !is_turn(i)) continue;
    const Apply apply{.packet = packet,
                      .flow = flow,
                      .sequence = sequence,
                      .now = now,
                      .start = start_,
                      .verdict = verdict};
    if (!std::visit(apply, rule.action)) continue;
    ++counters_[i].applied;
    verdict.cause = &rule;
  }
  sequence.note(packet, verdict);
  return verdict;
}

bool FaultFilter::refuses_registration(Time now) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto* refuse = std::get_if<RefuseRegistration>(&rules_[i].action);
    if (refuse == nullptr || !is_now(rules_[i].selector, now) || !is_turn(i)) continue;
    if (!registrations_.chance(refuse->probability)) continue;
    ++counters_[i].applied;
    return true;
  }
  return false;
}

bool FaultFilter::is_now(const Selector& selector, Time now) const {
  const Duration since = now - start_;
  return since >= selector.from && (!selector.lasting || since < selector.from + *selector.lasting);
}

bool FaultFilter::selects(std::size_t rule, const PacketInfo& packet, const Flow& flow, Time now) {
  const Selector& s = rules_[rule].selector;
  const bool fits =
      !std::holds_alternative<Refuse>(rules_[rule].action) || is_reliable_request(packet.opcode);
  return fits && (!s.direction || *s.direction == packet.direction) &&
         (!s.qp || *s.qp == packet.local_qp) && (!s.peer || *s.peer == packet.peer) &&
         (!s.opcodes || s.opcodes->test(packet.opcode.to_byte())) &&
         (!s.psns || s.psns->holds(packet.psn.value())) &&
         (!s.messages || s.messages->holds(flow.messages)) && is_now(s, now);
}

// Counts a selected packet. Returns whether its number is one of those wanted.
bool FaultFilter::is_turn(std::size_t rule) {
  const Selector& s = rules_[rule].selector;
  RuleCounters& counters = counters_[rule];
  ++counters.selected;
  return (!s.occurrences || s.occurrences->holds(counters.selected)) &&
         counters.selected % s.every == 0 && counters.applied < s.limit;
}

void FaultFilter::Sequence::note(const PacketInfo& packet, const Verdict& verdict) {
  if (!is_reliable_request(packet.opcode) || has_passed(packet.psn)) return;
  if (verdict.dropped && (!gap || packet.psn.before(*gap))) {
    gap = packet.psn;
    gap_is_answered = verdict.answer.has_value();
  } else if (verdict.dropped && packet.psn == *gap) {
    gap_is_answered = verdict.answer.has_value();
  } else if (!verdict.dropped && packet.psn == gap) {
    gap.reset();
  }
  if (!verdict.dropped && !has_gap_before(packet.psn)) passed = packet.psn;
}

FaultFilter::Flow& FaultFilter::flow_of(std::size_t rule, u64 key, const Sequence& sequence) {
  const u64 seed = seed_ + kRuleStride * rule + kFlowStride * sequence.ordinal;
  return flows_[rule].try_emplace(key, seed).first->second;
}

FaultFilter::Sequence& FaultFilter::sequence_of(u64 key) {
  return sequences_
      .try_emplace(key, Sequence{.ordinal = sequences_.size(), .gap = {}, .passed = {}})
      .first->second;
}

}  // namespace verbena::faults
