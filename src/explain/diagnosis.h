// Diagnosis: the most likely cause of an error, decided from facts alone. A cause that is certain
// comes before one that is likely: what was seen here, then what is known of the peer, then what
// the packets look like.
#pragma once

#include "explain/facts.h"

namespace verbena::explain {

enum class Cause : u8 {
  // Of silence.
  kFaultRule,       // a fault rule of this process lost or answered the packets
  kDroppedPKey,     // the peer's packets came, and were dropped here: their P_Key,
  kDroppedSource,   // their address,
  kDroppedState,    // our QP's state,
  kDroppedService,  // its type
  kDroppedICRC,     // or their ICRC
  kGIDFamilies,     // one GID is IPv4, the other IPv6
  kPeerQPMissing,   // no such QP
  kPeerQPNotReady,  // Reset or Init
  kPeerQPInError,
  kPeerQPOfAnother,       // it has another QPN as its peer,
  kPeerAddressOfAnother,  // or another address
  kPeerPKey,
  kPeerPortClosed,  // nothing on UDP port 4791
  kPeerUnreachable,
  kPeerProcessEnded,
  kPathMTU,
  kNeverAnswered,
  kStoppedAnswering,
  // What the peer said.
  kNoReceive,
  kRemoteAccess,
  kRemoteInvalidRequest,
  kRemoteOperational,
  kBadResponse,
  // Our own side.
  kLocalProtection,
  kReceiveTooSmall,
  kReceiveProtection,
  kReceiveInvalidate,
  kLocalOperation,
  kWindowBind,
  kPostedInError,
  kRefusedRequest,  // of the peer, by our responder
  kUnknown,
};

[[nodiscard]] Cause diagnose(const Facts& facts);

// What several parts look at.
// The last packet that was taken; nullptr: none is known.
[[nodiscard]] const PacketRecord* last_answer(const Facts& facts);
// The fault rule that stands in the way; nullptr: none does.
[[nodiscard]] const std::string* guilty_rule(const Facts& facts);
// The largest IP packet among those that were sent and not answered; 0: not known.
[[nodiscard]] u32 largest_unanswered_bytes(const Facts& facts);

}  // namespace verbena::explain
