// Link: one direction of a simulated wire: a rate, a delay, and what a bad day does to frames. All
// choices come from its PRNG.
#pragma once

#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "device/frame.h"

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
  double corrupt = 0;    // one to three bits flip, or the end is cut off
  double mark = 0;       // ECN: congestion experienced
  Duration reorder_delay = us(5);
};

// How much a receiver's driver knows of the IPv4 Identification (device/frame.h).
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

// A frame as it lies on the wire: from BTH to ICRC, and its addressing.
struct Frame {
  GID source, destination;
  u16 udp_source_port = 0;
  u16 identification = 0;
  bool identification_known = true;
  u8 traffic_class = 0, hop_limit = 0;
  std::vector<u8> transport;

  // Gathers the payload and adds the ICRC, as a real link does.
  [[nodiscard]] static Frame of(const EgressFrame& egress, u16 identification);
  [[nodiscard]] IngressFrame view() const;
  friend bool operator==(const Frame&, const Frame&) = default;
};

enum class Fate : u8 { kSent, kLost, kLate, kCopied, kCorrupted, kMarked };

struct LinkCounters {
  u64 frames = 0, lost = 0, late = 0, copied = 0, corrupted = 0, marked = 0;
};

class Link {
 public:
  struct Arrival {
    Time at;
    Frame frame;
  };
  Link(const LinkConfig& config, PRNG prng) : config_(config), prng_(prng) {}

  const LinkConfig& config() const { return config_; }
  const LinkCounters& counters() const { return counters_; }
  // A cable that is pulled: everything is lost from now on.
  void cut() { config_.faults.loss = 1; }

  Duration duration_of(const Frame& frame) const;
  // What becomes of a frame whose last bit leaves at `sent`: no arrival, one, or two.
  Fate transmit(Frame frame, Time sent, std::vector<Arrival>& arrivals);
  // The frame finds the buffer full.
  Fate drop();

 private:
  Time arrival(Time sent, bool late);
  void corrupt(Frame& frame);

  LinkConfig config_;
  PRNG prng_;
  LinkCounters counters_;
};

}  // namespace verbena::sim
