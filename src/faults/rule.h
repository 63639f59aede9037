// Rule: one fault: its effect, and the packets that it selects. docs/faults.md describes the
// language in which people write rules (spec.h reads it).
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "faults/packet_info.h"
#include "wire/ib/aeth.h"

namespace verbena::faults {

// --- effects. Each `probability` is per packet, 0 .. 1.

struct Loss {
  double probability = 1;
};
// Bursts of loss: a two-state Markov chain. E. N. Gilbert, "Capacity of a burst-noise channel",
// 1960; E. O. Elliott, 1963. Each packet may change the state, then is lost with the state's
// probability.
struct BurstLoss {
  double enter = 0.001, leave = 0.3;  // to and from the bad state
  double inside = 1, outside = 0;     // chance of loss in the bad and in the good state
};
struct Reorder {
  double probability = 1;
  Duration by = us(100);  // at most; later packets overtake it
};
struct Duplicate {
  double probability = 1;
  Duration by = us(100);  // the second copy comes within this time
};
struct Delay {
  Duration by, jitter;  // a packet is `by` plus up to `jitter` late, and none overtakes another
};
struct Corrupt {
  double probability = 1;
  u32 bits = 1;            // how many flip
  bool good_icrc = false;  // true: payload bits flip under an ICRC that is right
};
struct Rate {  // a wire of each QP and direction
  i64 bits_per_second = 0;
  Duration queue = ms(10);  // a packet that would wait longer is lost
};
struct Mark {  // ECN: congestion experienced
  double probability = 1;
};
struct Blackhole {};  // every selected packet is lost
struct Flap {         // the link is up, then down, and so on
  Duration up, down;
};
// The packet is lost, and its requester receives this answer. IBTA Vol 1, 9.7.5.2.8, 9.9.3.
struct Refuse {
  AETHKind kind = AETHKind::kNAK;
  u8 value = 0;  // NAKCode, or the RNR timer's code
  double probability = 1;
};
struct BreakQP {};    // its QP goes to Error
struct OverrunCQ {};  // the CQ of its QP overflows
struct RefuseRegistration {
  double probability = 1;
};

using Action = std::variant<Loss, BurstLoss, Reorder, Duplicate, Delay, Corrupt, Rate, Mark,
                            Blackhole, Flap, Refuse, BreakQP, OverrunCQ, RefuseRegistration>;

// --- selectors

struct Interval {  // both ends included
  u64 first = 0, last = ~u64{0};
  constexpr bool holds(u64 n) const { return first <= n && n <= last; }
};

struct Selector {
  std::optional<Direction> direction;  // none: both
  std::optional<QPN> qp;               // of the faulty device
  std::optional<GID> peer;
  std::optional<std::bitset<256>> opcodes;  // by the OpCode's byte
  std::optional<Interval> psns;
  std::optional<Interval> messages;  // of its QP and direction, counted from 1
  // Limits on the packets that the selectors above select:
  std::optional<Interval> occurrences;  // counted from 1
  u64 every = 1;                        // each n-th
  u64 limit = ~u64{0};                  // the rule has an effect at most so many times
  Duration from{};                      // since the device was opened
  std::optional<Duration> lasting;      // nullopt: to the end
};

struct Rule {
  Action action;
  Selector selector;
  std::string text;  // as written: names the cause in captures and messages
};

}  // namespace verbena::faults
