// ResponseQueue: the responses that an RC responder still has to send, in PSN order, and the
// responder resources from which it answers duplicate READs and atomics. IBTA Vol 1, 9.7.5.1
// (responses), 9.7.5.1.2 (coalesced ACKs), 9.4.5 (responder resources).
//
// Bounded: kMaxPending responses; a request that finds no room counts as lost. The first request
// allocates the memory for all of them, once: a QP that receives no requests has none.
#pragma once

#include <optional>

#include "base/ring.h"
#include "memory/copy_lane.h"
#include "transport/datagram_engine.h"
#include "wire/ib/sack_eth.h"

namespace verbena {

struct Response {
  enum class Kind : u8 { kAcknowledge, kRead, kAtomic, kConfirmation, kSack };
  Kind kind = Kind::kAcknowledge;
  AETHKind aeth_kind = AETHKind::kACK;
  u8 aeth_value = 0;  // NAK code or RNR timer; the credits of an ACK are filled in when sent
  PSN psn;            // of the (next) response packet
  MSN msn;
  u64 address = 0;  // kRead: next byte
  PSN sacked_from;  // kSack: PSN of the first bit
  RKey r_key;
  PDId pd;
  u32 length_bytes = 0;   // kRead: still to send
  bool started = false;   // kRead: the First packet is out
  bool repeated = false;  // answers a duplicate: needs no responder resource
  u64 after = 0;          // leaves when the writes up to this ticket have ended (copy_lane.h)
  u64 original = 0;       // kAtomic; kSack: its bits
  u64 far_atomic = 0;     // as ResponderResource's

  bool acknowledges_only() const { return kind == Kind::kAcknowledge || kind == Kind::kSack; }
  bool positive_ack() const { return kind == Kind::kAcknowledge && aeth_kind == AETHKind::kACK; }
};

// A READ, atomic, FLUSH or ATOMIC WRITE that was executed, kept for its duplicates.
struct ResponderResource {
  Response::Kind kind = Response::Kind::kRead;
  PSN first_psn;
  u32 packets = 1;
  MSN msn;
  u64 address = 0;
  RKey r_key;
  PDId pd;  // against which the key was checked
  u32 length_bytes = 0;
  u64 original = 0;
  u64 far_atomic = 0;  // the ticket of an atomic on far memory that found the original; 0: none
  bool holds(PSN psn) const { return first_psn.distance_to(psn) < packets; }
};

class ResponseQueue {
 public:
  static constexpr u32 kMaxPending = 64;

  // `copies`: the writes that a response waits for; nullptr: none are late.
  explicit ResponseQueue(u8 max_resources, const CopyLane* copies = nullptr);

  void clear();
  // --- input
  // Joins an ACK that still waits at the end, unless that one waits for fewer writes.
  void acknowledge(PSN psn, MSN msn);
  // `psn` is the oldest missing one. Joins a waiting SACK for the same 64 PSNs.
  void sack(PSN psn, MSN msn, const SackETH& sack);
  void negative(PSN psn, MSN msn, AETHKind kind, u8 value);
  // Adds a new READ or atomic. Precondition: !full(). Its resource replaces the oldest beyond
  // `limit`.
  void execute(const ResponderResource& resource, u8 limit);
  // Answers a duplicate. For a READ, `address`/`length_bytes` are those of the repeated request.
  void repeat(const ResponderResource& original, PSN psn, u64 address, u32 length_bytes);
  // The same, beside the response that is still being sent: only a part is missing.
  void repeat_part(const ResponderResource& original, PSN psn, u64 address, u32 length_bytes);
  [[nodiscard]] const ResponderResource* find(PSN psn) const;
  [[nodiscard]] u32 pending_rd_atomic() const;  // without repetitions
  [[nodiscard]] bool full() const { return pending_.size() + 2 >= kMaxPending; }

  // --- output: the response at the front, which the responder sends from and pops.
  [[nodiscard]] bool empty() const { return pending_.empty(); }
  [[nodiscard]] Response* front() { return pending_.empty() ? nullptr : &pending_.front(); }
  void pop_front() { (void)pending_.pop(); }
  void refuse_front(NAKCode code);  // it becomes a NAK
  void drop_behind_front();
  // Drops the responses to requests at and after `psn`.
  void drop_from(PSN psn);

 private:
  void take_memory();
  void push(const Response& response);
  u64 writes_begun() const { return copies_ == nullptr ? 0 : copies_->begun(); }

  // So many ACKs wait for different writes, so that a peer which never stops is acknowledged all
  // the same.
  static constexpr u32 kMostWaiting = kMaxPending / 4;

  const u8 max_resources_;
  const CopyLane* const copies_;
  Ring<Response> pending_{0};
  Ring<ResponderResource> resources_{0};
};

}  // namespace verbena
