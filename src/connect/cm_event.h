// CMEvent: an event that a CMAgent reports to the program, for one connection. Messages are passed
// on whole, as the peer sent them. The program's own calls cause no events for their connection.
#pragma once

#include <variant>

#include "base/types.h"
#include "connect/cm_params.h"
#include "connect/ip_cm.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena {

// A REQ for one of our listeners. Then: mra(), accept(), reject() or abandon().
struct ConnectRequest {
  ListenerId listener{};
  GID local_gid{}, remote_gid{};
  cm::REQ req{};
  cm::ECE ece{};
};
// A REP to our REQ. Then: mra(), ready_to_use(), reject() or abandon().
struct ReplyReceived {
  cm::REP rep{};
  cm::ECE ece{};
};
// The peer has received our message and asks for time.
struct ReceiptAcknowledged {
  cm::MRA mra{};
};
// An RTU to our REP: both sides may send.
struct Established {
  cm::RTU rtu{};
};
// Not connected: a REJ arrived, or our side found that the request belongs to a stale connection.
// The ID is dead.
struct Rejected {
  cm::REJ rej{};
};
// Not connected: all retries are spent. The ID is dead.
enum class Unanswered : u8 { kREQ, kREP, kSIDRREQ };
struct Unreachable {
  Unanswered what = Unanswered::kREQ;
};
// The connection has ended; reported once. TimeWaitExit follows, for kRequested after
// reply_disconnect().
enum class DisconnectCause : u8 {
  kRequested,  // a DREQ came: answer with reply_disconnect()
  kReplied,    // a DREP came to our DREQ
  kCrossed,    // a DREQ came while ours was in flight; answered
  kNoReply,    // our DREQ had none
  kRejected,   // a REJ came: the peer knows no such connection
  kStale,      // the peer used its QPN for another connection
};
struct Disconnected {
  DisconnectCause cause = DisconnectCause::kRequested;
  std::array<u8, cm::DREP::kPrivateDataSize> private_data{};  // of the DREQ or DREP, else zeros
};
// The QP may be used again, and the ID is dead. Reported early if the table needs the entry.
struct TimeWaitExit {};
// A SIDR_REQ for one of our listeners. Then: sidr_reply() or abandon().
struct SIDRRequest {
  ListenerId listener{};
  GID local_gid{}, remote_gid{};
  cm::SIDRREQ req{};
};
// The answer to our SIDR_REQ. The ID is dead.
struct SIDRReply {
  cm::SIDRREP rep{};
};

// --- iWARP: connections by MPA (mpa_set_up.h). Its private data is the program's alone.

// A request for one of our listeners. Then: accept(), reject() or abandon().
struct StreamRequest {
  ListenerId listener{};
  IPEndpoint local{}, remote{};
  u8 responder_resources = 0, initiator_depth = 0;  // of the peer
  std::span<const u8> private_data{};               // good until the call returns
};
// Both ends may send.
struct StreamEstablished {
  u8 responder_resources = 0, initiator_depth = 0;  // ours
  std::span<const u8> private_data{};               // of the reply; good until the call returns
};
// Not connected. The ID is dead.
struct StreamRefused {
  int error = 0;                       // ECONNREFUSED: by the peer; ETIMEDOUT; others: errno
  std::span<const u8> private_data{};  // of the peer's rejection; good until the call returns
};
// No longer connected. The ID is dead.
struct StreamEnded {};

struct CMEvent {
  CommId id{};
  u64 user = 0;
  std::variant<ConnectRequest, ReplyReceived, ReceiptAcknowledged, Established, Rejected,
               Unreachable, Disconnected, TimeWaitExit, SIDRRequest, SIDRReply, StreamEstablished,
               StreamRefused, StreamEnded>
      what{};
};

}  // namespace verbena
