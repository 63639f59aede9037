// CMConnection: one connection, or one SIDR exchange, as a CMAgent keeps it. IBTA Vol 1, 12.9.
#pragma once

#include <optional>

#include "base/time.h"
#include "base/types.h"
#include "connect/cm_params.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena {

enum class CMState : u8 {
  // active side
  kREQSent,
  kMRAREQReceived,  // the peer has our REQ and asked for time
  kREPReceived,     // waits until the program is ready
  kMRAREPSent,      // the same; a repeated REP is answered with an MRA
  // passive side
  kREQReceived,  // waits until the program accepts
  kMRAREQSent,   // the same; a repeated REQ is answered with an MRA
  kREPSent,
  kMRAREPReceived,  // the peer has our REP and asked for time
  // both
  kEstablished,
  kDREQSent,
  kDREQReceived,  // waits until the program replies
  kTimeWait,      // over; a repeated DREQ gets its DREP again
  kRetired,       // dead to the program; a duplicate gets our last answer again
  // SIDR
  kSIDRREQSent,
  kSIDRREQReceived,  // waits until the program replies
};

struct CMConnection {
  CommId local_id{};
  CommId remote_id{};  // 0: not known yet
  GID local_gid{}, remote_gid{};
  CMState state = CMState::kREQSent;
  CMTransport transport = CMTransport::kRC;
  u64 user = 0;
  u64 transaction_id = 0;
  QPN local_qpn{}, remote_qpn{};
  GUID remote_ca_guid{};
  std::optional<ListenerId> waits_at;  // the listener whose backlog counts it
  ServiceId service_id{};              // SIDR: repeated in the answer
  bool abandoned = false;              // the program wants no more events
  bool disconnect_told = false;        // Disconnected was reported

  u8 packet_life_time = 0;  // code
  Duration response_time;   // of the peer, to what we send
  Duration time_wait;       // stay in kTimeWait
  Duration retire_time;     // stay in kRetired: while the peer may repeat itself
  u8 max_retries = 0, retries_left = 0;
  Time patient_until;  // active side: a refusal before this time is retried

  cm::Attribute sent_attribute{};  // of `sent`
  cm::MADBytes sent{};             // the last message, which the timer or a duplicate repeats

  // Used by ConnectionTable.
  Time deadline = Time::never();
  bool lingering = false;
  bool indexed_remote = false, indexed_qp = false;
};

}  // namespace verbena
