// Pacer: holds QPs to the rates that congestion control gives them. After a packet of S bytes a
// QP's next may go S * 8 / rate later, by the rate of then: a change of rate moves no wait that has
// begun, but with an algorithm that says so (CongestionControl::moves_waits()).
#pragma once

#include "device/device_config.h"
#include "device/port/egress_scheduler.h"

namespace verbena {

class Pacer {
 public:
  Pacer(const PacingConfig& config, EgressScheduler& scheduler)
      : config_(config), scheduler_(scheduler) {}

  struct PacketSize {
    u32 bytes;  // BTH to ICRC
    u32 payload_bytes;
  };

  // The QP is new, or as new.
  void begin(QueuePair& qp, const CongestionParameters& parameters);
  void on_cnp(QueuePair& qp, Time now);
  // A packet has gone that is held to the rate. Precondition: qp.paced.
  void on_sent(QueuePair& qp, const PacketSize& packet, Time now);
  // The packet that has arrived may have changed the rate.
  void on_packet(QueuePair& qp, Time now) {
    if (qp.wait_moves) [[unlikely]]
      move_wait(qp, now);
  }

 private:
  bool is_free(CongestionControl& congestion, Time now) const;
  u32 counted_bytes(const PacketSize& packet) const;
  Duration wait_after(u32 bytes, Rate rate) const;
  void move_wait(QueuePair& qp, Time now);

  const PacingConfig config_;
  EgressScheduler& scheduler_;
};

}  // namespace verbena
