// Requester: the send queue of an iWARP QP: requests become RDMAP messages, and complete. RFC 5040,
// 5; RFC 7306, 5 and 6.
//   completes when          | SEND, WRITE: their last byte is with TCP; READ, atomics: answered
//   in order                | of the queue: a SEND behind a READ waits for it
// Sans-IO; no allocation after begin(). What is sent is looked at ahead of its time: next()
// says what follows a position and changes nothing; on_sent() makes it so.
#pragma once

#include <optional>

#include "base/ring.h"
#include "transport/engine.h"
#include "transport/iwarp/out_message.h"
#include "transport/iwarp/segment_reader.h"
#include "transport/iwarp/short_cut.h"
#include "transport/stream_agreement.h"
#include "transport/stream_engine.h"

namespace verbena::iwarp {

class Requester {
 public:
  // How far the send queue is sent.
  struct Position {
    u64 next = 0;   // index of the request that sends next
    u32 part = 0;   // of its messages: how many are before this position
    u32 reads = 0;  // READs and atomics without an answer
    u32 send_msn = 1, read_msn = 1;
  };

  Requester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault, u8 max_ord);

  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { queue_.take_back(count); }
  void free_sends(u32 count) { queue_.free_entries(count); }
  void on_state(QPState from);
  // A message that says we are ready, if there is to be one, is before all requests. RFC 6581, 9
  void begin(const StreamAgreement& agreement);

  // --- out
  [[nodiscard]] const Position& position() const { return position_; }
  // Requests that are done here, without a message, at the position. `progress`: of the stream.
  void execute_here(const ShortCut::Progress& progress, Time now);
  void on_timer() { short_cut_.on_timer(); }
  [[nodiscard]] Time next_timer() const { return short_cut_.next_timer(); }
  // Returns in `out` the message that follows `at`, and moves `at` behind it. Returns false if
  // there is none for now.
  [[nodiscard]] bool next(Position& at, OutMessage& out) const;
  // Moves `at` behind a message that next() has returned for it.
  static void step_over(Position& at, const OutMessage& message);
  // The bytes [offset, offset + length) of its payload.
  [[nodiscard]] MemoryFault gather(const OutMessage& message, u32 offset, u32 length,
                                   PayloadList& out) const;
  // A message that next() gave for the position is sent whole.
  void on_sent(const OutMessage& message);
  // Its request fails: what it names here cannot be used.
  void on_local_fault(const OutMessage& message);

  // --- in
  // A segment of a READ response begins. Returns nullopt if the oldest READ expects it.
  [[nodiscard]] std::optional<TerminateReason> check_response(const SegmentHeader& segment);
  [[nodiscard]] Resolved place_of_response(u64 to, u32 length) const;
  [[nodiscard]] std::optional<TerminateReason> place_response(u64 to, Bytes payload);
  [[nodiscard]] std::optional<TerminateReason> on_response_segment(const SegmentHeader& segment);
  [[nodiscard]] std::optional<TerminateReason> on_atomic_response(Bytes payload);
  // A copy of a response to far memory has failed.
  void on_copy_failed();
  // The peer has refused a READ or atomic: the oldest.
  void on_refused_read();

  [[nodiscard]] bool poll_cqe(CQE& out);
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }
  [[nodiscard]] bool is_draining() const;
  // SQD: all that had started is done; once.
  [[nodiscard]] bool take_drained();
  // No request waits to be sent.
  [[nodiscard]] bool is_empty() const { return position_.next == queue_.end_index(); }
  [[nodiscard]] bool awaits_responses() const { return !reads_.empty(); }

 private:
  struct Read {  // a message that is answered
    u64 request = OutMessage::kNoRequest;
    bool ends_request = false;
    bool is_atomic = false;
    u32 stag = 0;
    u64 to = 0;
    u32 length = 0, received = 0;
  };
  struct Failure {
    u64 request;
    WQEStatus status;
  };

  [[nodiscard]] bool is_inside(const Position& at) const;
  [[nodiscard]] bool may_start(const Position& at) const;
  void execute_local();
  void make_message(const Position& at, OutMessage& out) const;
  void send_message(const SendWQE& wqe, const Position& at, OutMessage& out) const;
  void write_message(const SendWQE& wqe, OutMessage& out) const;
  void immediate_message(const SendWQE& wqe, const Position& at, OutMessage& out) const;
  void read_message(const SendWQE& wqe, const Position& at, OutMessage& out) const;
  void atomic_message(const SendWQE& wqe, const Position& at, OutMessage& out) const;
  [[nodiscard]] u32 max_segment_of_request(const SendWQE& wqe) const;
  void fail(u64 request, WQEStatus status);
  void note_fault(u64 request, WQEStatus status);
  [[nodiscard]] u64 oldest_read() const;  // request
  [[nodiscard]] std::optional<WQEStatus> status_of_oldest() const;

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  CopyLane* const copies_;
  EngineCounters& counters_;
  RequesterFault& fault_;
  mutable SendQueue queue_;
  ShortCut short_cut_;
  Position position_;
  Ring<Read> reads_;  // as long as begin() needs it
  const u8 max_ord_;
  u32 ord_ = 0;
  bool may_use_rfc7306_ = false;
  bool draining_ = false;
  std::optional<Failure> failure_;
};

}  // namespace verbena::iwarp
