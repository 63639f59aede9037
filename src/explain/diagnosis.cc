#include "explain/diagnosis.h"

#include <algorithm>

#include "base/check.h"
#include "device/port/p_key_match.h"
#include "wire/ib/aeth.h"

namespace verbena::explain {
namespace {

constexpr u32 kIPv4AndUDP = 28, kIPv6AndUDP = 48;
constexpr u32 kICRC = 4;

bool is_response(const PacketRecord& packet) {
  return packet.direction == Direction::kReceived &&
         !traits_of(Opcode::from_byte(packet.opcode)).request;
}

bool was_taken(const PacketRecord& packet) {
  return packet.reception == Reception::kAccepted && packet.rule == 0;
}

std::optional<Cause> of_drop(Reception reception) {
  switch (reception) {
    case Reception::kPKey: return Cause::kDroppedPKey;
    case Reception::kSource: return Cause::kDroppedSource;
    case Reception::kState: return Cause::kDroppedState;
    case Reception::kService: return Cause::kDroppedService;
    case Reception::kBadICRC: return Cause::kDroppedICRC;
    case Reception::kAccepted:
    case Reception::kMalformed:
    case Reception::kUnknownQP: return std::nullopt;
  }
  CHECK_UNREACHABLE();
}

// Looks for packets that came for us since the last answer, and were dropped.
std::optional<Cause> dropped_here(const Facts& facts) {
  const PacketRecord* const answer = last_answer(facts);
  for (auto packet = facts.packets.rbegin(); packet != facts.packets.rend(); ++packet) {
    if (&*packet == answer) break;
    if (packet->direction != Direction::kReceived) continue;
    if (const std::optional<Cause> cause = of_drop(packet->reception)) return cause;
  }
  return std::nullopt;
}

std::optional<Cause> of_peer_qp(const Facts& facts, const PeerFacts::QP& peer) {
  switch (peer.state) {
    case QPState::kReset:
    case QPState::kInit: return Cause::kPeerQPNotReady;
    case QPState::kError: return Cause::kPeerQPInError;
    case QPState::kRTR:
    case QPState::kRTS:
    case QPState::kSQD:
    case QPState::kSQE: break;
  }
  if (!p_keys_match(peer.p_key, facts.qp.p_key)) return Cause::kPeerPKey;
  if (peer.source != facts.qp.path.destination || peer.destination != facts.qp.path.source)
    return Cause::kPeerAddressOfAnother;
  if (peer.dest_qp != facts.qp.qpn) return Cause::kPeerQPOfAnother;
  return std::nullopt;
}

std::optional<Cause> of_peer(const Facts& facts) {
  const PeerFacts& peer = facts.peer;
  if (peer.place == PeerFacts::Place::kThisDevice)
    return peer.qp ? of_peer_qp(facts, *peer.qp) : Cause::kPeerQPMissing;
  const bool answered = facts.fault.requester.answered;
  if (peer.process_alive == false)
    return answered ? Cause::kPeerProcessEnded : Cause::kPeerQPMissing;
  if (peer.port_refused) return answered ? Cause::kPeerProcessEnded : Cause::kPeerPortClosed;
  if (peer.host_unreachable) return Cause::kPeerUnreachable;
  return std::nullopt;
}

bool exceeds_path(const Facts& facts) {
  return facts.peer.path_mtu && largest_unanswered_bytes(facts) > *facts.peer.path_mtu;
}

Cause of_silence(const Facts& facts) {
  if (guilty_rule(facts) != nullptr) return Cause::kFaultRule;
  if (const std::optional<Cause> cause = dropped_here(facts)) return *cause;
  if (facts.qp.path.source.is_ipv4() != facts.qp.path.destination.is_ipv4())
    return Cause::kGIDFamilies;
  if (exceeds_path(facts)) return Cause::kPathMTU;
  if (const std::optional<Cause> cause = of_peer(facts)) return *cause;
  return facts.fault.requester.answered || last_answer(facts) != nullptr ? Cause::kStoppedAnswering
                                                                         : Cause::kNeverAnswered;
}

Cause said(const Facts& facts, Cause cause) {
  return guilty_rule(facts) != nullptr ? Cause::kFaultRule : cause;
}

Cause of_send(const Facts& facts) {
  switch (facts.status) {
    case WQEStatus::kRetryExceeded: return of_silence(facts);
    case WQEStatus::kRNRRetryExceeded: return said(facts, Cause::kNoReceive);
    case WQEStatus::kRemoteAccess: return said(facts, Cause::kRemoteAccess);
    case WQEStatus::kRemoteInvalidRequest: return said(facts, Cause::kRemoteInvalidRequest);
    case WQEStatus::kRemoteOperational: return said(facts, Cause::kRemoteOperational);
    case WQEStatus::kBadResponse: return Cause::kBadResponse;
    case WQEStatus::kLocalProtection: return Cause::kLocalProtection;
    case WQEStatus::kLocalQPOperation: return Cause::kLocalOperation;
    case WQEStatus::kMWBind: return Cause::kWindowBind;
    case WQEStatus::kFlushed: return Cause::kPostedInError;
    case WQEStatus::kSuccess:
    case WQEStatus::kLocalLength:
    case WQEStatus::kLocalAccess: return Cause::kUnknown;
  }
  CHECK_UNREACHABLE();
}

Cause of_receive(WQEStatus status) {
  switch (status) {
    case WQEStatus::kLocalLength: return Cause::kReceiveTooSmall;
    case WQEStatus::kLocalProtection: return Cause::kReceiveProtection;
    case WQEStatus::kLocalAccess: return Cause::kReceiveInvalidate;
    case WQEStatus::kSuccess:
    case WQEStatus::kLocalQPOperation:
    case WQEStatus::kFlushed:
    case WQEStatus::kMWBind:
    case WQEStatus::kBadResponse:
    case WQEStatus::kRemoteInvalidRequest:
    case WQEStatus::kRemoteAccess:
    case WQEStatus::kRemoteOperational:
    case WQEStatus::kRetryExceeded:
    case WQEStatus::kRNRRetryExceeded: return Cause::kUnknown;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Cause diagnose(const Facts& facts) {
  if (facts.injected) return Cause::kFaultRule;
  switch (facts.told) {
    case Told::kBySendCompletion: return of_send(facts);
    case Told::kByReceiveCompletion: return of_receive(facts.status);
    case Told::kByEvent:
      return facts.fault.responder.refusal != Refusal::kNone ? Cause::kRefusedRequest
                                                             : Cause::kUnknown;
  }
  CHECK_UNREACHABLE();
}

const PacketRecord* last_answer(const Facts& facts) {
  for (auto packet = facts.packets.rbegin(); packet != facts.packets.rend(); ++packet)
    if (is_response(*packet) && was_taken(*packet)) return &*packet;
  return nullptr;
}

// Without an answer, the rule must have dropped half or more of the packets sent since the last
// answer, or some answer. Otherwise a rule has answered in the peer's place, and has dropped the
// request that it answers.
const std::string* guilty_rule(const Facts& facts) {
  const PacketRecord* const answer = last_answer(facts);
  const bool silence = facts.status == WQEStatus::kRetryExceeded;
  u32 sent = 0, lost = 0;
  bool lost_answer = false, after = answer == nullptr;
  const std::string* rule = nullptr;
  for (const PacketRecord& packet : facts.packets) {
    after = after || &packet == answer;
    const bool is_sent = packet.direction == Direction::kSent;
    if (silence ? !after : !is_sent || answer == nullptr || packet.psn != answer->psn) continue;
    sent += is_sent;
    if (packet.rule == 0) continue;
    lost += is_sent;
    lost_answer = lost_answer || !is_sent;
    rule = &facts.rules[packet.rule - 1u];
  }
  return lost_answer || 2 * lost >= sent ? rule : nullptr;
}

u32 largest_unanswered_bytes(const Facts& facts) {
  const PacketRecord* const answer = last_answer(facts);
  const u32 below = facts.qp.path.destination.is_ipv4() ? kIPv4AndUDP : kIPv6AndUDP;
  u32 largest = 0;
  for (const PacketRecord& packet : facts.packets) {
    if (packet.direction != Direction::kSent) continue;
    if (answer != nullptr && packet.at <= answer->at) continue;
    largest = std::max(largest, u32{packet.transport_bytes} + kICRC + below);
  }
  return largest;
}

}  // namespace verbena::explain
