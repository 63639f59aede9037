// The words of each cause, and the advice.
#include <algorithm>

#include "base/check.h"
#include "explain/names.h"
#include "explain/paragraph.h"
#include "explain/text.h"
#include "wire/ib/ack_timeout.h"
#include "wire/ib/rnr_timer.h"

namespace verbena::explain {
namespace {

std::string address_of_peer(const Facts& facts) { return facts.qp.path.destination.to_string(); }

// "7 retries, 67.1 ms apart (timeout 14)"
std::string retries(const Facts& facts) {
  const std::optional<Duration> timeout = ack_timeout(facts.qp.ack_timeout);
  return text("retry_cnt %u, timeout %u%s", facts.qp.retry_count, facts.qp.ack_timeout,
              timeout ? (" (" + text_of(*timeout) + ")").c_str() : "");
}

std::string range(u64 address, u64 length) {
  return text("[0x%llx, 0x%llx)", static_cast<unsigned long long>(address),
              static_cast<unsigned long long>(address + length));
}

// Says why a key did not grant the access. `whose`: "R_Key", "L_Key".
std::string key_fault(const char* whose, u32 number, MemoryFault fault,
                      const std::optional<KeyInfo>& key, const std::string& wanted) {
  const std::string name = text("%s 0x%08x", whose, number);
  switch (fault) {
    case MemoryFault::kNone:
    case MemoryFault::kLater: break;
    case MemoryFault::kBadKey:
      if (!key) return name + " is not known: never registered, deregistered, or mistyped.";
      if (key->is_window && !key->is_bound)
        return name + " is of a memory window that is not bound.";
      return name + (key->is_window
                         ? " is of a memory window of another PD or QP."
                         : " is of a region in another protection domain than the QP's.");
    case MemoryFault::kBounds:
      return wanted + " is out of bounds: " + name + " covers " +
             (key ? range(key->address, key->length) : std::string("less")) + ".";
    case MemoryFault::kAccess:
      return name + " does not grant it: its access flags are " +
             (key ? names_of(key->access) : std::string("too few")) + ".";
    case MemoryFault::kGone:
      return "the memory at " + wanted +
             " is not there any more: unmapped while it was registered.";
    case MemoryFault::kProtected:
      return "the process itself may not access the memory at " + wanted +
             " so: its pages are read-only or have no access (mmap, mprotect).";
  }
  return "the memory could not be accessed.";
}

std::string sge_fault(const RefusedSGE& refused) {
  if (refused.fault == MemoryFault::kNone)
    return "the memory was not there, or its key has changed meanwhile.";
  std::string out = text("SGE %u (address 0x%llx, length %u, L_Key 0x%08x): ", refused.index,
                         static_cast<unsigned long long>(refused.sge.address), refused.sge.length,
                         refused.sge.l_key.value);
  if (refused.fault == MemoryFault::kAccess)
    return out + "its region lacks IBV_ACCESS_LOCAL_WRITE, which whatever writes into it needs.";
  return out + key_fault("L_Key", refused.sge.l_key.value, refused.fault, refused.key,
                         range(refused.sge.address, refused.sge.length));
}

constexpr const char* kPagesRemedy =
    "memory that stays mapped until ibv_dereg_mr, with PROT_READ and, where it is written, "
    "PROT_WRITE.";

// Returns true for a fault of pages, not of a key.
bool is_of_pages(MemoryFault fault) {
  return fault == MemoryFault::kGone || fault == MemoryFault::kProtected;
}

constexpr const char* kSGERemedy =
    "keep the region registered until the completion has been polled; give lkey, not rkey, of an "
    "ibv_mr of the QP's PD, and addresses inside of it.";

const char* sge_remedy(const RefusedSGE& refused) {
  return is_of_pages(refused.fault) ? kPagesRemedy : kSGERemedy;
}

// Says why our responder refuses a request.
Advice refusal_advice(const ResponderFault& fault) {
  const std::string what = verbena::name_of(fault.opcode);
  const std::string wanted = range(fault.remote_address, fault.length_bytes);
  switch (fault.refusal) {
    case Refusal::kNone: break;
    case Refusal::kOpcodeSequence:
      return {what + " does not follow from the packet before it: the requester is out of step.",
              "the same sq_psn and rq_psn on both sides, and a QP that was not reset on one."};
    case Refusal::kLength:
      return {what + " has a payload that its message or the path MTU does not allow.",
              "the same path_mtu on both sides."};
    case Refusal::kNotEnabled:
      return {what + " is not enabled by the qp_access_flags of the QP that it came to.",
              "the IBV_ACCESS_REMOTE_* flag of the operation in qp_access_flags when that QP goes "
              "to Init."};
    case Refusal::kUnaligned:
      return {what +
                  " names an address that is no multiple of 8, or a region whose memory is not "
                  "aligned as its addresses are.",
              "8-byte aligned remote addresses."};
    case Refusal::kFlushKind:
      return {what + " asks for a selectivity level or placement type that there is not.",
              "IBV_FLUSH_RANGE or IBV_FLUSH_MR, and IBV_FLUSH_GLOBAL or IBV_FLUSH_PERSISTENT."};
    case Refusal::kTooManyReads:
      return {
          "more READs, atomics and their like are outstanding than max_dest_rd_atomic of the QP "
          "they came to.",
          "max_rd_atomic of the requester no larger than max_dest_rd_atomic of the responder."};
    case Refusal::kUnknownSRQ:
      return {"the request names an XRC SRQ that does not exist.",
              "the number that ibv_get_srq_num() gives on the responder."};
    case Refusal::kRemoteMemory:
      return {key_fault("R_Key", fault.r_key.value, fault.memory, fault.key, wanted),
              is_of_pages(fault.memory)
                  ? kPagesRemedy
                  : "the rkey and address that the owner of the memory has now, and the access "
                    "flags of its ibv_reg_mr."};
    case Refusal::kReceiveTooSmall:
      return {text("a message of %s%llu bytes came to a receive of %llu bytes.",
                   fault.message_bytes > fault.room_bytes ? "at least " : "",
                   static_cast<unsigned long long>(fault.message_bytes),
                   static_cast<unsigned long long>(fault.room_bytes)),
              "receives as large as the largest message of the peer."};
    case Refusal::kReceiveMemory: return {sge_fault(fault.refused), sge_remedy(fault.refused)};
    case Refusal::kInvalidate:
      return {text("SEND with invalidate names R_Key 0x%08x, which is no type 2 window bound "
                   "through this QP.",
                   fault.r_key.value),
              "the key of such a window, once for each bind."};
  }
  return {"not known.", ""};
}

// Returns the meaning of an iWARP TERMINATE. RFC 5040, 4.8; RFC 5041, 8; RFC 5044, 8.
std::string reason_of(const StreamFault& fault) {
  struct Reason {
    u8 layer, type, code;
    const char* words;
  };
  static constexpr Reason kReasons[] = {
      {0, 0, 0, "the memory of its own request was not there"},
      {0, 1, 0, "READ or atomic with an STag (R_Key) that is not valid"},
      {0, 1, 1, "READ or atomic out of bounds of its region"},
      {0, 1, 2, "the region or the QP does not grant the right"},
      {0, 1, 4, "the range wraps around 2^64"},
      {0, 2, 5, "another version of RDMAP"},
      {0, 2, 6, "an RDMAP message that is not expected"},
      {0, 2, 7, "the memory of a region is not there, or its pages do not allow the access"},
      {0, 2, 9, "SEND with Invalidate of a key that cannot be invalidated"},
      {1, 1, 0, "WRITE or READ response with an STag (R_Key) that is not valid"},
      {1, 1, 1, "WRITE out of bounds of its region"},
      {1, 1, 3, "the range wraps around 2^64"},
      {1, 2, 2, "no receive was posted for a SEND, or too many READs were outstanding"},
      {1, 2, 3, "a message out of sequence"},
      {1, 2, 5, "a SEND was longer than its receive"},
      {2, 0, 2, "a wrong CRC"},
      {2, 0, 3, "a segment whose length makes no sense"},
  };
  for (const Reason& reason : kReasons)
    if (reason.layer == fault.layer && reason.type == fault.type && reason.code == fault.code)
      return reason.words;
  return "layer " + std::to_string(fault.layer) + ", type " + std::to_string(fault.type) +
         ", code " + std::to_string(fault.code);
}

Advice stream_end(const StreamFault& fault) {
  switch (fault.what) {
    case StreamFault::What::kTerminatedByPeer:
      return {
          "the peer has ended the connection with TERMINATE: " + reason_of(fault) + ".",
          "keys, bounds, rights and receives as the peer has them; iWARP has no RNR, so receives "
          "are to be posted before the peer sends (docs/iwarp.md)."};
    case StreamFault::What::kTerminatedByUs:
      return {"we have ended the connection with TERMINATE: " + reason_of(fault) + ".",
              "the same at the peer: its request named what is not there."};
    case StreamFault::What::kLost:
      return {"the TCP connection was lost: reset by the peer, or it timed out.",
              "whether the peer's process has ended, and its host can be reached."};
    case StreamFault::What::kNone: break;
  }
  CHECK_UNREACHABLE();
}

Advice fault_rule(const Facts& facts) {
  if (const std::string* const rule = guilty_rule(facts))
    return {"the fault rule '" + *rule + "' of this process lost or answered its packets.",
            "without --fault (VERBENA_FAULT)."};
  return {"a fault rule of this process broke the QP.", "without --fault (VERBENA_FAULT)."};
}

Advice never_answered(const Facts& facts) {
  std::string who = text("QP 0x%06x at %s never answered (%s): ", facts.qp.dest_qp.value,
                         address_of_peer(facts).c_str(), retries(facts).c_str());
  if (facts.peer.process_alive == true)
    return {who +
                "its process lives, but the QP is not there, is not in RTR or RTS, has another "
                "peer, address or P_Key, or packets are lost on the way.",
            "both sides' QPNs and GIDs as they were exchanged; move the responder to RTR before "
            "the requester sends."};
  return {who +
              "wrong QPN or GID, a peer that is not in RTR yet, a firewall on UDP port 4791, or a "
              "network that loses all.",
          "both sides' QPNs, GIDs and P_Keys as they were exchanged; UDP port 4791 open both ways; "
          "a capture there (verbena run --capture)."};
}

Advice stopped(const Facts& facts) {
  const PacketRecord* const answer = last_answer(facts);
  std::string out = "the peer had answered before and then stopped";
  if (answer != nullptr) out += ", " + text_of(facts.at - answer->at) + " ago";
  out += text(" (%s): ", retries(facts).c_str());
  if (facts.peer.process_alive == true)
    return {out +
                "its process lives, but its QP was destroyed, reset or is in Error, or the process "
                "is stopped, or packets are lost on the way (a fault rule there, a firewall).",
            "the error of the peer's QP, which is the first one; do not destroy a QP before its "
            "peer is done."};
  return {
      out +
          "its process or host is gone, its QP was destroyed or is in Error, or the network broke.",
      "the peer's own messages, which are about the first error; a longer timeout and larger "
      "retry_cnt where the network has outages."};
}

Advice path_mtu(const Facts& facts) {
  return {text("packets of %u bytes (IP) do not fit the path to %s, which takes %u.",
               largest_unanswered_bytes(facts), address_of_peer(facts).c_str(),
               facts.peer.path_mtu.value_or(0)),
          "a smaller path_mtu, on both sides, or the same interface MTU all along the path."};
}

Advice no_receive(const Facts& facts) {
  u8 code = 0;
  if (const PacketRecord* const answer = last_answer(facts)) code = answer->syndrome & 0x1f;
  const char* const where = !facts.peer.qp           ? "in its receive queue or SRQ"
                            : facts.peer.qp->has_srq ? "its SRQ is empty"
                                                     : "in its receive queue";
  return {
      text("the peer had no receive posted (%s): it said so (RNR NAK) %u times in a row, with a "
           "timer of %s (min_rnr_timer %u).",
           where, facts.qp.rnr_retry_count + 1u, text_of(rnr_timer(code)).c_str(), code),
      text("receives posted before the peer sends, and again as they complete; rnr_retry 7 "
           "(without end; now %u), or a longer min_rnr_timer on the peer.",
           facts.qp.rnr_retry_count)};
}

// Uses the facts of the peer QP, if it is on this device.
std::optional<Advice> from_peer(const Facts& facts) {
  if (!facts.peer.qp || facts.peer.qp->fault.refusal == Refusal::kNone) return std::nullopt;
  Advice advice = refusal_advice(facts.peer.qp->fault);
  advice.cause = "at the peer, " + advice.cause;
  return advice;
}

Advice remote_access(const Facts& facts) {
  if (const std::optional<Advice> known = from_peer(facts)) return *known;
  const RequesterFault& fault = facts.fault.requester;
  if (fault.op == SendOp::kSendWithInvalidate)
    return {
        "the peer may not invalidate the key that the SEND names: it is no type 2 window bound "
        "through its QP.",
        "the key of such a window, once for each bind."};
  return {text("the peer refused access to %s with R_Key 0x%08x: key unknown or of another PD, "
               "range out of bounds, or %s missing on its region (the NAK does not tell which).",
               range(fault.remote_address, fault.length_bytes).c_str(), fault.r_key.value,
               needed_flag(fault.op) != nullptr ? needed_flag(fault.op) : "a right"),
          "the rkey and address that the peer has now (also byte order), its ibv_reg_mr access "
          "flags, and that it has not deregistered; Verbena on the peer's side says which it was."};
}

bool needs_alignment(SendOp op) {
  return op == SendOp::kCompareSwap || op == SendOp::kFetchAdd || op == SendOp::kAtomicWrite;
}

// Returns true for operations that max_rd_atomic and max_dest_rd_atomic count.
bool is_rd_atomic(SendOp op) {
  return needs_alignment(op) || op == SendOp::kRDMARead || op == SendOp::kFlush;
}

Advice remote_invalid(const Facts& facts) {
  if (const std::optional<Advice> known = from_peer(facts)) return *known;
  const RequesterFault& fault = facts.fault.requester;
  if (needs_alignment(fault.op) && fault.remote_address % 8 != 0)
    return {text("the remote address of a %s is no multiple of 8.", name_of(fault.op)),
            "8-byte aligned remote addresses."};
  if (needed_flag(fault.op) == nullptr)
    return {
        text("the message of %u bytes is longer than the receive that the peer had posted for it.",
             fault.length_bytes),
        "receives as large as the largest message; where it is large enough, the same path_mtu on "
        "both sides."};
  std::string cause =
      text("the peer's QP does not allow the operation: %s is not in its qp_access_flags",
           needed_flag(fault.op));
  if (is_rd_atomic(fault.op))
    cause += ", or more READs, atomics and their like were outstanding than its max_dest_rd_atomic";
  return {cause + ".",
          "qp_access_flags (set when the QP goes to Init), max_dest_rd_atomic and path_mtu of the "
          "peer's QP."};
}

Advice posted_in_error(const Facts& facts) {
  return {text("the request was posted to a QP that was in state %s already, by ibv_modify_qp or "
               "because the connection was closed; requests posted there are flushed.",
               name_of(facts.qp.state)),
          "no sends after a disconnect or an error; a new connection for more."};
}

}  // namespace

Advice advice_for(Cause cause, const Facts& facts) {
  const PeerFacts& peer = facts.peer;
  const u32 peer_qpn = facts.qp.dest_qp.value;
  const std::string address = address_of_peer(facts);
  switch (cause) {
    case Cause::kFaultRule: return fault_rule(facts);
    case Cause::kDroppedPKey:
      return {
          text(
              "packets of the peer came with another P_Key than this QP's 0x%04x and were dropped.",
              facts.qp.p_key.value),
          "the same P_Key (pkey_index) on both sides."};
    case Cause::kDroppedSource:
      return {"packets for this QP came from another address than " + address +
                  ", or to another of ours than " + facts.qp.path.source.to_string() +
                  ", and were dropped.",
              "the GID index whose address the other side was told, on both sides."};
    case Cause::kDroppedState:
      return {text("packets for this QP came while it was in state %s, and were dropped.",
                   name_of(facts.qp.state)),
              "RTR before the peer sends."};
    case Cause::kDroppedService:
      return {text("packets for this QP came from a QP of another type than %s, and were dropped.",
                   name_of(facts.qp.type)),
              "the same type of QP on both sides."};
    case Cause::kDroppedICRC:
      return {
          "packets for this QP came with a wrong ICRC and were dropped: damaged on the way, or "
          "changed by a middlebox.",
          "the path between the hosts; another RoCEv2 peer's ICRC settings."};
    case Cause::kGIDFamilies:
      return {"one end is an IPv4 address and the other an IPv6 address: " +
                  facts.qp.path.source.to_string() + " to " + address + ".",
              "GID indexes of one family on both sides (-x or -g of many programs; `verbena "
              "devices` lists them)."};
    case Cause::kPeerQPMissing:
      return {text("there is no QP 0x%06x on the peer: never made, or destroyed.", peer_qpn),
              "the qp_num that the peer has now; do not destroy a QP before its peer is done."};
    case Cause::kPeerQPNotReady:
      return {text("the peer's QP 0x%06x is in state %s, which takes no packets.", peer_qpn,
                   name_of(peer.qp->state)),
              "move it to RTR before this side sends."};
    case Cause::kPeerQPInError:
      return {text("the peer's QP 0x%06x is in state Error.", peer_qpn),
              "what ended it, which is the first error: its completions and events."};
    case Cause::kPeerQPOfAnother:
      return {text("the peer's QP 0x%06x is connected to QP 0x%06x, not to this one.", peer_qpn,
                   peer.qp->dest_qp.value),
              "dest_qp_num on both sides as it was exchanged."};
    case Cause::kPeerAddressOfAnother:
      return {text("the peer's QP 0x%06x expects packets from %s to %s; ours go from %s to %s.",
                   peer_qpn, peer.qp->destination.to_string().c_str(),
                   peer.qp->source.to_string().c_str(), facts.qp.path.source.to_string().c_str(),
                   address.c_str()),
              "the GID index whose address the other side was told, on both sides."};
    case Cause::kPeerPKey:
      return {text("the peer's QP has P_Key 0x%04x, this one 0x%04x.", peer.qp->p_key.value,
                   facts.qp.p_key.value),
              "the same P_Key (pkey_index) on both sides."};
    case Cause::kPeerPortClosed:
      return {"nothing listens on UDP port 4791 of " + address + " (ICMP says so).",
              "the address and GID index of the peer; start it first."};
    case Cause::kPeerUnreachable:
      return {"there is no way to " + address + ": no route, or no such host.",
              "the address; ping; routes."};
    case Cause::kPeerProcessEnded:
      return {"the peer process has ended; it had answered before.",
              "its exit status and messages: it ended first."};
    case Cause::kPathMTU: return path_mtu(facts);
    case Cause::kNeverAnswered: return never_answered(facts);
    case Cause::kStoppedAnswering: return stopped(facts);
    case Cause::kNoReceive: return no_receive(facts);
    case Cause::kRemoteAccess: return remote_access(facts);
    case Cause::kRemoteInvalidRequest: return remote_invalid(facts);
    case Cause::kRemoteOperational:
      if (const std::optional<Advice> known = from_peer(facts)) return *known;
      return {
          "the peer could not do it for a reason of its own, mostly a receive whose SGEs do not "
          "name registered, writable memory.",
          "the peer's completion for that receive (local protection error?), and its messages."};
    case Cause::kBadResponse:
      return {
          "the peer answered with something else than was asked for: a READ response of the wrong "
          "length, or a response to what has none.",
          "the same path_mtu on both sides; a capture (verbena run --capture) of the peer's "
          "responses."};
    case Cause::kLocalProtection:
      return {sge_fault(facts.fault.requester.refused), sge_remedy(facts.fault.requester.refused)};
    case Cause::kReceiveTooSmall:
    case Cause::kReceiveProtection:
    case Cause::kReceiveInvalidate:
    case Cause::kRefusedRequest: return refusal_advice(facts.fault.responder);
    case Cause::kLocalOperation:
      return {
          text("a %s was posted to a QP with max_rd_atomic 0.", name_of(facts.fault.requester.op)),
          "max_rd_atomic of at least 1 when the QP goes to RTS."};
    case Cause::kWindowBind:
      return {"the window, its region or its key does not allow the bind or invalidation.",
              "a region registered with IBV_ACCESS_MW_BIND that covers the range, in the same PD; "
              "a type 2 window that is not bound yet."};
    case Cause::kPostedInError: return posted_in_error(facts);
    case Cause::kUnknown: break;
  }
  if (facts.fault.stream.what != StreamFault::What::kNone) return stream_end(facts.fault.stream);
  return {"not known; the packets above are all that there is.", ""};
}

}  // namespace verbena::explain
