// Ingress: frames on their way in: checked, decoded, admitted, and handed to their QP's engine; or
// dropped, and counted by reason. Whatever arrives, nothing else happens. IBTA Vol 1, 9.6; A17.9.
#pragma once

#include "device/admission.h"
#include "device/cnp_queue.h"
#include "device/counters.h"
#include "device/engine_runner.h"
#include "device/frame.h"
#include "device/gsi.h"

namespace verbena {

class Ingress {
 public:
  Ingress(const QPTable& qps, EngineRunner& runner, CNPQueue& cnps, GSI& gsi, Counters& counters)
      : qps_(qps), runner_(runner), cnps_(cnps), gsi_(gsi), counters_(counters) {}

  void on_frame(const IngressFrame& frame, Time now);

 private:
  bool is_sound(const IngressFrame& frame);
  void on_cnp(const QueuePair* qp, const IngressFrame& frame);
  void on_packet(QueuePair* qp, const PacketView& packet, const IngressFrame& frame, Time now);
  void on_marked(QueuePair& qp, Time now);
  void count_drop(Admission reason);

  const QPTable& qps_;
  EngineRunner& runner_;
  CNPQueue& cnps_;
  GSI& gsi_;
  Counters& counters_;
};

}  // namespace verbena
