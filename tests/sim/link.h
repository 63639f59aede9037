// Link: one direction of a simulated wire: a rate, a delay, and what a bad day does to frames, by
// the faults of the live device (src/faults/).
#pragma once

#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "faults/held_frame.h"

namespace verbena::sim {

struct Rate {
  i64 ps_per_byte = 0;
};
constexpr Rate gbps(i64 n) { return {8000 / n}; }

// Each a probability per frame.
struct Faults {
  double loss = 0;
  double reorder = 0;    // the frame is late by up to reorder_delay
  double duplicate = 0;  // a second copy comes, late by up to reorder_delay
  double corrupt = 0;    // bits flip, and the ICRC is wrong
  double mark = 0;       // ECN: congestion experienced
  Duration reorder_delay = us(5);
};

// One of them for a plan: 0 in half of all plans, so that some have all kinds and some have none.
inline double draw_probability(PRNG& prng, double most) {
  return prng.chance(0.5) ? 0 : most * static_cast<double>(prng.in(1, 100)) / 100;
}

// How much a receiver's driver knows of the IPv4 Identification (device/port/frame.h).
enum class Identification : u8 { kKnown, kGuessed, kGuessedWrong };

struct LinkConfig {
  Rate rate = gbps(100);
  Duration delay = us(1);
  Faults faults{};
  // A frame that would wait longer for the wire is dropped: a switch's or a socket's full buffer.
  Duration max_queueing = sec(1);
  Duration coalesce{};  // arrivals wait for the next multiple of it, and come as a burst
  Identification identification = Identification::kKnown;
};

enum class Fate : u8 { kSent, kLost, kLate, kCopied, kCorrupted, kMarked };

struct LinkCounters {
  u64 frames = 0, lost = 0, late = 0, copied = 0, corrupted = 0, marked = 0;
};

class Link {
 public:
  struct Arrival {
    Time at;
    faults::HeldFrame frame;
    Identification identification = Identification::kKnown;
    [[nodiscard]] IngressFrame view() const;
  };
  Link(const LinkConfig& config, u64 seed);

  const LinkConfig& config() const { return config_; }
  const LinkCounters& counters() const { return counters_; }
  // A cable that is pulled: everything is lost from now on.
  void cut() { is_cut_ = true; }
  // A switch on the way whose queue is long: from now on everything is marked, or no more.
  void congest() { is_congested_ = true; }
  void relieve() { is_congested_ = false; }

  Duration duration_of(const faults::HeldFrame& frame) const;
  // Returns the fate of a frame whose last bit leaves at `sent`: no arrival, one, or two.
  Fate transmit(faults::HeldFrame frame, Time sent, std::vector<Arrival>& arrivals);
  // The frame finds the buffer full.
  Fate drop();

 private:
  Time arrival(Time sent) const;

  LinkConfig config_;
  faults::FaultFilter filter_;
  bool is_cut_ = false, is_congested_ = false;
  LinkCounters counters_;
};

}  // namespace verbena::sim
