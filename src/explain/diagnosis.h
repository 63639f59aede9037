// Diagnosis: decides the most likely cause of an error, from facts alone. A certain cause comes
// before a likely one. First come observations of this side, then facts of the peer, then the
// packets.
#pragma once

#include "explain/facts.h"

namespace verbena::explain {

enum class Cause : u8 {
  // Causes of silence.
  kFaultRule,       // a fault rule of this process lost or answered the packets
  kDroppedPKey,     // the peer's packets came, and were dropped here because of their P_Key,
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
  // Answers of the peer.
  kNoReceive,
  kRemoteAccess,
  kRemoteInvalidRequest,
  kRemoteOperational,
  kBadResponse,
  // Causes on our own side.
  kLocalProtection,
  kReceiveTooSmall,
  kReceiveProtection,
  kReceiveInvalidate,
  kLocalOperation,
  kWindowBind,
  kPostedInError,
  kRefusedRequest,  // our responder refused a request of the peer
  kUnknown,
};

[[nodiscard]] Cause diagnose(const Facts& facts);

// Functions that several parts use.
// Returns the last packet that was accepted; nullptr if none is known.
[[nodiscard]] const PacketRecord* last_answer(const Facts& facts);
// Returns the fault rule that drops or answers the packets; nullptr if there is none.
[[nodiscard]] const std::string* guilty_rule(const Facts& facts);
// Returns the size of the largest IP packet that was sent and not answered; 0 if it is not known.
[[nodiscard]] u32 largest_unanswered_bytes(const Facts& facts);

}  // namespace verbena::explain
