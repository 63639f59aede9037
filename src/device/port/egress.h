// Egress: packets on their way out: whose turn it is, then addresses and bytes around the headers.
// IBTA Vol 1, 9.2 (BTH); A17.3 (RoCEv2 addressing), A17.9.3 (CNP).
#pragma once

#include "device/device_config.h"
#include "device/port/cnp_queue.h"
#include "device/port/counters.h"
#include "device/port/frame.h"
#include "device/port/gsi.h"
#include "device/qp/engine_runner.h"

namespace verbena {

class Egress {
 public:
  Egress(const DeviceConfig& config, EngineRunner& runner, CNPQueue& cnps, GSI& gsi,
         Counters& counters)
      : config_(config), runner_(runner), cnps_(cnps), gsi_(gsi), counters_(counters) {}

  // CNPs first: they are few, and of use only while they are fresh. Then management.
  [[nodiscard]] bool poll_frame(Time now, Trains trains, EgressFrame& out);
  // Posts to an RC QP that is_free_to_send(), and sends without its turn what needs none.
  [[nodiscard]] PostError post_last_send(QueuePair& qp, const SendWR& wr, Time now);
  // Only frames that inform the peer: CNPs, and acknowledgements of QPs that have some.
  [[nodiscard]] bool poll_acknowledgement(Time now, EgressFrame& out);

 private:
  void finish(QueuePair& qp, EgressFrame& out);
  bool goes_without_frame(QueuePair& qp);
  bool poll_cnp(EgressFrame& out);
  void write_packet(const QueuePair& qp, EgressFrame& out);
  void pace(QueuePair& qp, const EgressFrame& frame, Time now);
  void count(u32 packets, u64 bytes);
  void count(QueuePair& qp, u32 packets, u64 bytes);

  const DeviceConfig& config_;
  EngineRunner& runner_;
  CNPQueue& cnps_;
  GSI& gsi_;
  Counters& counters_;
  TxPacket packet_;  // the one being sent; a member since it is large
};

}  // namespace verbena
