// Responder: executes a peer's messages at an iWARP QP: WRITEs, SENDs, READ requests, atomics and
// immediate data. RFC 5040, 5; RFC 5041, 5 to 8; RFC 7306, 5 and 6. The ProtectionTable checks
// every byte before it is placed, as RC's.
// A fault is a TerminateReason: the stream ends with it. There is no RNR: a message without a
// receive ends the stream (RFC 5041, 7.1).
// Sans-IO; no allocation after begin().
#pragma once

#include <optional>

#include "base/ring.h"
#include "transport/iwarp/out_message.h"
#include "transport/iwarp/segment_reader.h"
#include "transport/stream_engine.h"
#include "transport/unreliable_receives.h"

namespace verbena::iwarp {

class Responder {
 public:
  Responder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault, u8 max_ird);

  void on_state(QPState from);
  void begin(const StreamAgreement& agreement);
  void give_back_receives() { receives_.give_back(); }

  // --- in: for each segment of the operations above check(), place() any number of times,
  // finish().
  [[nodiscard]] std::optional<TerminateReason> check(const SegmentHeader& segment,
                                                     RDMAPOpcode opcode);
  // Where so many bytes of a WRITE's segment go.
  [[nodiscard]] Resolved place_of_write(const SegmentHeader& segment, u32 offset, u32 length) const;
  [[nodiscard]] std::optional<TerminateReason> place(const SegmentHeader& segment,
                                                     RDMAPOpcode opcode, u32 offset, Bytes payload);
  [[nodiscard]] std::optional<TerminateReason> finish(const SegmentHeader& segment,
                                                      RDMAPOpcode opcode);

  // --- out: responses, in the order of their requests
  [[nodiscard]] bool has_responses() const { return !responses_.empty(); }
  // Returns in `out` the index-th unsent response. Returns false if there are fewer.
  [[nodiscard]] bool response(u32 index, OutMessage& out) const;
  [[nodiscard]] MemoryFault gather(const OutMessage& response, u32 offset, u32 length,
                                   PayloadList& out) const;
  // The memory of a response is no longer as it was when the request came.
  [[nodiscard]] TerminateReason on_unreadable(const OutMessage& response, MemoryFault fault);
  void on_response_sent() { responses_.pop(); }

  // A copy of a message to far memory has failed.
  [[nodiscard]] TerminateReason on_copy_failed(const CopyMark& mark);

  [[nodiscard]] bool poll_cqe(CQE& out) { return receives_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event() { return receives_.poll_event(); }

 private:
  struct Response {
    bool is_atomic = false;
    RDMAPReadRequest read{};
    RDMAPAtomicResponse atomic{};
    u64 after = 0;       // leaves when the writes up to this ticket have ended (copy_lane.h)
    u64 far_atomic = 0;  // ticket of the atomic; 0: `atomic` has the original
  };

  [[nodiscard]] std::optional<TerminateReason> check_write(const SegmentHeader& segment);
  [[nodiscard]] std::optional<TerminateReason> check_send(const SegmentHeader& segment);
  [[nodiscard]] std::optional<TerminateReason> check_immediate(const SegmentHeader& segment);
  [[nodiscard]] std::optional<TerminateReason> check_read_queue(const SegmentHeader& segment,
                                                                u32 bytes);
  [[nodiscard]] std::optional<TerminateReason> take_receive();
  [[nodiscard]] std::optional<TerminateReason> on_read_request(Bytes payload);
  [[nodiscard]] std::optional<TerminateReason> on_atomic_request(Bytes payload);
  [[nodiscard]] std::optional<TerminateReason> finish_send(const SegmentHeader& segment,
                                                           RDMAPOpcode opcode);
  [[nodiscard]] std::optional<TerminateReason> place_write(const SegmentHeader& segment, u32 offset,
                                                           Bytes payload);
  [[nodiscard]] bool execute_atomic(const RDMAPAtomicRequest& request, u8* at, Response& response);
  void mark_remote(u32 stag, u64 to, u64 length);
  void respond(Response response);
  [[nodiscard]] TerminateReason refuse(Refusal refusal, MemoryFault fault, u32 stag, u64 to,
                                       u64 length, TerminateReason reason);
  void complete_immediate(RDMAPOpcode opcode);

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  CopyLane* const copies_;
  EngineCounters& counters_;
  ResponderFault& fault_;
  UnreliableReceives receives_;
  Ring<Response> responses_;  // as long as begin() needs it
  const u8 max_ird_;
  u32 ird_ = 0;
  bool may_use_rfc7306_ = false;
  u32 send_msn_ = 1, read_msn_ = 1;  // expected
  u32 send_offset_ = 0;              // bytes of the SEND that are placed
  bool in_send_ = false, in_write_ = false;
  u64 write_bytes_ = 0;  // of the last WRITE, for immediate data
  u32 immediate_ = 0;
};

}  // namespace verbena::iwarp
