// The attributes of a queue pair that its transport uses. IBTA Vol 1, 11.2.5.2 (Modify QP). The
// device owns one per QP and changes it in modify_qp; a transport reads it.
#pragma once

#include "base/psn.h"
#include "memory/protection_table.h"
#include "transport/address_vector.h"
#include "transport/completion_counter.h"
#include "transport/tcp_tuple.h"
#include "wire/ib/mtu.h"

namespace verbena {

enum class QPType : u8 { kRC, kUC, kUD, kXRCInitiator, kXRCTarget, kRawPacket };

enum class QPState : u8 { kReset, kInit, kRTR, kRTS, kSQD, kSQE, kError };

struct QPAttributes {
  QPType type = QPType::kRC;
  QPState state = QPState::kReset;
  QPN qpn;
  PDId pd;
  bool signal_all = false;  // every send WQE completes visibly

  AddressVector path;  // RC, UC
  QPN dest_qp;
  TCPTuple tcp;  // iWARP: its connection
  MTU path_mtu = MTU::k1024;
  PKey p_key = kDefaultPKey;
  u16 p_key_index = 0;
  QKey q_key;  // UD
  PSN sq_psn, rq_psn;
  AccessFlags remote_access;  // kRemoteRead/Write/Atomic as qp_access_flags grant
  u8 port = 1;
  u8 max_rd_atomic = 0;       // outstanding READs and atomics as requester
  u8 max_dest_rd_atomic = 0;  // responder resources
  u8 min_rnr_timer = 0;       // code 0..31, wire/ib/rnr_timer.h
  u8 ack_timeout = 0;         // code 0..31, wire/ib/ack_timeout.h; 0: none
  u8 retry_count = 0;         // 0..7
  u8 rnr_retry_count = 0;     // 0..7; 7: without limit

  CompletionCounters counters;  // attached for the QP's life
};

}  // namespace verbena
