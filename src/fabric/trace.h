// Trace: the interface by which a simulation reports events. Calls come in the order of simulated
// time. Counters: the counts of every simulation.
#pragma once

#include <array>
#include <bit>

#include "base/time.h"
#include "fabric/topology.h"

namespace verbena::fabric {

struct Counters {
  static constexpr u32 kSmallFrame = 100;

  u64 hops = 0;                 // frames sent over a link, of any kind
  u64 data_hops = 0;            // of those above kSmallFrame bytes
  u64 wire_bytes = 0;           // of all hops
  u64 marks = 0;                // frames marked by a switch
  u64 pauses = 0, resumes = 0;  // PFC frames sent
  u64 drops = 0;                // by switches, for want of room
  u64 early_drops = 0;          // by switches, of frames that cannot be marked
  u64 storms = 0;               // pauses that a watchdog ended
  u64 watchdog_drops = 0;       // of what waited for them
  u64 receiver_drops = 0;       // by slow receivers, for want of room
  u64 corrupted = 0;            // by links: their error rate, and rules of faults
  u64 lost_on_dead_links = 0;   // what was queued for, or on, a link when it went down
  u64 unroutable = 0;           // by switches: no way to the destination
  u64 credit_updates = 0;       // InfiniBand flow control packets
  u64 events = 0;

  [[nodiscard]] u64 lost() const { return corrupted + lost_on_dead_links; }  // by links
  friend bool operator==(const Counters&, const Counters&) = default;
  Counters& operator+=(const Counters& other) {
    using All = std::array<u64, sizeof(Counters) / sizeof(u64)>;
    All sum = std::bit_cast<All>(*this);
    const All more = std::bit_cast<All>(other);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    *this = std::bit_cast<Counters>(sum);
    return *this;
  }
};

class Trace {
 public:
  virtual ~Trace() = default;
  // The last acknowledgement has reached the sender.
  virtual void on_flow_finished(u32 flow, Time now) = 0;
  // Its sender has given it up: nothing was acknowledged for too long (IBTA 9.9.2.4.2).
  virtual void on_flow_failed(u32 /*flow*/, Time /*now*/) {}
  // A device has received a pause frame for a priority; quanta 0: it may send again.
  virtual void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) = 0;
};

}  // namespace verbena::fabric
