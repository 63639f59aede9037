// Counters of a device, with the names and meanings of Linux's
// /sys/class/infiniband/*/ports/*/{counters,hw_counters}.
#pragma once

#include "transport/engine.h"

namespace verbena {

struct Counters {
  // counters/. Data is in bytes here, BTH to ICRC; sysfs shows it divided by 4 (IBTA 16.1.3.5).
  u64 port_xmit_packets = 0, port_rcv_packets = 0;
  u64 port_xmit_bytes = 0, port_rcv_bytes = 0;
  u64 port_rcv_errors = 0;  // malformed, or a bad ICRC
  u64 port_xmit_discards = 0;
  // hw_counters/
  u64 rx_icrc_encapsulated = 0;  // RoCE packets with a wrong ICRC
  u64 np_ecn_marked_roce_packets = 0, np_cnp_sent = 0;
  u64 rp_cnp_handled = 0, rp_cnp_ignored = 0;
  u64 out_of_buffer = 0;
  EngineCounters transport;
  // Why a well-formed packet was dropped.
  u64 dropped_unknown_qp = 0, dropped_p_key = 0, dropped_source = 0, dropped_service = 0,
      dropped_state = 0;
  u64 dropped_silenced = 0;  // of a source whose requests were refused too often
};

void add(EngineCounters& to, const EngineCounters& more);

}  // namespace verbena
