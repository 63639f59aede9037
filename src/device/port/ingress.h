// Ingress: frames on their way in: checked, decoded, admitted, and handed to their QP's engine; or
// dropped, and counted by reason. Whatever arrives, nothing else happens. IBTA Vol 1, 9.6; A17.9.
#pragma once

#include "device/device_config.h"
#include "device/port/admission.h"
#include "device/port/cnp_queue.h"
#include "device/port/counters.h"
#include "device/port/frame.h"
#include "device/port/frame_check.h"
#include "device/port/gsi.h"
#include "device/port/multicast_table.h"
#include "device/port/refusal_limit.h"
#include "device/qp/engine_runner.h"

namespace verbena {

class Ingress {
 public:
  Ingress(const DeviceConfig& config, const QPTable& qps, const MulticastTable& multicast,
          EngineRunner& runner, CNPQueue& cnps, GSI& gsi, Counters& counters)
      : gids_(config.gids),
        qps_(qps),
        multicast_(multicast),
        runner_(runner),
        cnps_(cnps),
        gsi_(gsi),
        counters_(counters),
        refusals_(config.hardening.refusals_per_second) {}

  Reception on_frame(const IngressFrame& frame, Time now);
  // One packet, or a train, that the driver vouches for and has decoded; of frame.transport only
  // the size counts.
  Reception on_packet(const PacketView& packet, const IngressFrame& frame, Time now);

 private:
  Reception dispatch(const PacketView& packet, const IngressFrame& frame, Time now);
  Reception check(const IngressFrame& frame);
  void on_cnp(QueuePair* qp, const IngressFrame& frame, Time now);
  Reception on_packet(QueuePair* qp, const PacketView& packet, const IngressFrame& frame, Time now);
  Reception on_multicast(const PacketView& packet, const IngressFrame& frame, Time now);
  bool is_own_datagram(const PacketView& packet, const IngressFrame& frame) const;
  void on_brought(QueuePair& qp, const Acknowledgement& acknowledgement, Time now);
  void on_marked(QueuePair& qp, Time now);
  void count_drop(Reception reason);
  void run_engine(QueuePair& qp, const PacketView& packet, const IngressFrame& frame, Time now);
  void run_engine_once(QueuePair& qp, const PacketView& packet, const IngressFrame& frame,
                       Time now);

  const std::vector<GIDEntry>& gids_;
  const QPTable& qps_;
  const MulticastTable& multicast_;
  EngineRunner& runner_;
  CNPQueue& cnps_;
  GSI& gsi_;
  Counters& counters_;
  RefusalLimit refusals_;
  SeenFrames seen_;
  PacketView packet_;  // the one at hand; a member since it is large
};

}  // namespace verbena
