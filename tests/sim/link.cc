#include "tests/sim/link.h"

#include "wire/roce/overhead.h"

namespace verbena::sim {
namespace {

using faults::HeldFrame;

std::vector<faults::Rule> rules_of(const Faults& f) {
  std::vector<faults::Rule> rules;
  const auto add = [&](double probability, const faults::Action& action) {
    if (probability > 0) rules.push_back({.action = action, .selector = {}, .text = {}});
  };
  add(f.loss, faults::Loss{f.loss});
  add(f.mark, faults::Mark{f.mark});
  add(f.duplicate, faults::Duplicate{f.duplicate, f.reorder_delay});
  add(f.reorder, faults::Reorder{f.reorder, f.reorder_delay});
  add(f.corrupt, faults::Corrupt{.probability = f.corrupt, .bits = 3});
  return rules;
}

}  // namespace

Link::Link(const LinkConfig& config, u64 seed)
    : config_(config), filter_(rules_of(config.faults), seed, Time()) {}

IngressFrame Link::Arrival::view() const {
  IngressFrame view = frame.ingress();
  view.identification_known = identification == Identification::kKnown;
  if (identification == Identification::kGuessedWrong) ++view.identification;
  return view;
}

Duration Link::duration_of(const HeldFrame& frame) const {
  const auto bytes = static_cast<i64>(frame.ingress().transport.size());
  return ps(config_.rate.ps_per_byte * (bytes + kWireOverheadBytes));
}

Time Link::arrival(Time sent) const {
  const Time at = sent + config_.delay;
  const i64 grid = config_.coalesce.ps();
  return grid == 0 ? at : Time::from_ps((at.ps() + grid - 1) / grid * grid);
}

Fate Link::drop() {
  ++counters_.frames;
  ++counters_.lost;
  return Fate::kLost;
}

Fate Link::transmit(HeldFrame frame, Time sent, std::vector<Arrival>& arrivals) {
  const faults::Verdict verdict = filter_.judge(*faults::PacketInfo::of(frame.ingress()), sent);
  if (is_cut_ || verdict.dropped) return drop();
  ++counters_.frames;
  Fate fate = Fate::kSent;
  if (verdict.marked || is_congested_) {
    ++counters_.marked;
    fate = Fate::kMarked;
    frame.mark();
  }
  if (verdict.copy_delay) {
    ++counters_.copied;
    fate = Fate::kCopied;
    arrivals.push_back({arrival(sent + *verdict.copy_delay), frame, config_.identification});
  }
  if (verdict.delay > Duration{}) {
    ++counters_.late;
    fate = Fate::kLate;
  }
  // The CRC finds wrong bits, when it need not guess the Identification.
  Identification identification = config_.identification;
  if (verdict.corruption) {
    ++counters_.corrupted;
    fate = Fate::kCorrupted;
    frame.corrupt(*verdict.corruption);
    identification = Identification::kKnown;
  }
  arrivals.push_back({arrival(sent + verdict.delay), std::move(frame), identification});
  return fate;
}

}  // namespace verbena::sim
