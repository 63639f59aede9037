// IWARPEngine: RDMAP over DDP over MPA, on one TCP stream. RFC 5040, RFC 5041, RFC 5044; RFC 7306
// (atomics, immediate data). Its QP is an RC QP to programs; docs/iwarp.md says where it differs.
// Sending: gather() looks ahead over the messages that follow and builds their FPDUs; on_sent()
// goes the same way again, as far as the bytes went. An FPDU that went in part keeps the CRC of
// its first bytes, so that no byte needs to be kept.
#pragma once

#include <algorithm>
#include <vector>

#include "transport/iwarp/requester.h"
#include "transport/iwarp/responder.h"
#include "transport/iwarp/segment_reader.h"
#include "transport/iwarp/terminate_reasons.h"
#include "transport/stream_engine.h"

namespace verbena::iwarp {

struct IWARPLimits {
  u8 max_ird = 16, max_ord = 128;
};

class IWARPEngine final : public StreamEngine {
 public:
  IWARPEngine(const EngineParts& parts, const IWARPLimits& limits);

  [[nodiscard]] PostError post_send(const SendWR& wr, Time now) override {
    return requester_.post(wr, now);
  }
  void take_back_sends(u32 count) override { requester_.take_back(count); }
  void free_sends(u32 count) override { requester_.free_sends(count); }
  void give_back_receives() override { responder_.give_back_receives(); }
  void on_state(QPState from, Time now) override;
  [[nodiscard]] bool on_receive_posted(Time) override { return false; }
  void on_send_copy_failed() override;
  void on_receive_copy_failed(const CopyMark& mark) override;
  void on_timer(Time now) override;
  [[nodiscard]] EngineOutputs outputs() const override {
    EngineOutputs out;
    out.packet = !is_quiet();
    return out;
  }
  [[nodiscard]] bool poll_send_cqe(CQE& out) override { return requester_.poll_cqe(out); }
  [[nodiscard]] bool poll_receive_cqe(CQE& out) override { return responder_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event() override;
  [[nodiscard]] Time next_timer() const override {
    return std::min(requester_.next_timer(), has_heard_ ? Time::never() : ready_deadline_);
  }
  [[nodiscard]] const EngineCounters& counters() const override { return counters_; }
  [[nodiscard]] bool is_draining() const override { return requester_.is_draining(); }
  [[nodiscard]] const QPFault& fault() const override { return fault_; }

  void begin(const StreamAgreement& agreement, Time now) override;
  [[nodiscard]] Bytes on_bytes(Bytes bytes, Time now) override;
  [[nodiscard]] bool takes_bytes() const override { return !receives() || has_room(); }
  [[nodiscard]] MutableBytes direct_place() override;
  void on_placed(u32 bytes, Time now) override;
  void on_end(StreamEnd how, Time now) override;
  void gather(StreamGather& out, Time now) override;
  void on_sent(const StreamGather& gathered, u32 bytes, Time now) override;
  [[nodiscard]] bool wants_end() const override;
  [[nodiscard]] StreamCounts counts() const override { return counts_; }
  [[nodiscard]] std::optional<TerminateReason> sent_terminate() const override { return sent_; }
  [[nodiscard]] std::optional<TerminateReason> received_terminate() const override {
    return received_;
  }

 private:
  enum class Source : u8 { kNone, kReady, kRequest, kResponse, kTerminate };
  // Cursor: a position in the output: the message, and how much of it is before the position.
  struct Cursor {
    Source source = Source::kNone;
    OutMessage message;
    u32 offset = 0;    // of payload
    u64 position = 0;  // of the stream
    Requester::Position requests;
    u32 responses = 0;  // before this place
    bool response_next = true;
    bool ready_is_before = false, terminate_is_before = false;
  };
  struct FPDU {
    std::array<u8, 2 + kUntaggedHeader> header;
    u32 header_bytes = 0;
    PayloadList payload;
    u32 pad = 0;  // bytes before the CRC
  };

  // --- engine_send.cc
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] Cursor here() const;
  [[nodiscard]] bool start_message(Cursor& at) const;
  [[nodiscard]] bool start_request(Cursor& at) const;
  [[nodiscard]] bool start_response(Cursor& at) const;
  void make_ready_message(OutMessage& out) const;
  void make_terminate_message(OutMessage& out) const;
  [[nodiscard]] u32 payload_here(const Cursor& at) const;
  [[nodiscard]] bool ends_message(const Cursor& at) const {
    return at.offset + payload_here(at) == at.message.length;
  }
  [[nodiscard]] MemoryFault build(const Cursor& at, u32 length, FPDU& out) const;
  [[nodiscard]] MemoryFault gather_payload(const Cursor& at, u32 length, PayloadList& out) const;
  void write_header(const Cursor& at, u32 length, FPDU& out) const;
  [[nodiscard]] std::array<u8, 4> trailer_of(const CRC32C& crc) const;
  [[nodiscard]] u32 bytes_here(const Cursor& at, u32 length) const;
  void step_over(Cursor& at, u32 length, u32 bytes) const;
  [[nodiscard]] bool add_fpdu(const Cursor& at, u32 length, u32 skip, StreamGather& out);
  void add_plain(const Cursor& at, const FPDU& fpdu, u32 skip, StreamGather& out) const;
  void add_marked(const Cursor& at, const FPDU& fpdu, StreamGather& out);
  bool gather_one(Cursor& at, u32& skip, StreamGather& out);
  void gather_from_here(StreamGather& out);
  void on_unsendable(const Cursor& at, MemoryFault fault);
  void keep_far_part(const StreamGather& gathered, u32 from, u32 bytes);
  void begin_message();
  void finish_message(const Cursor& at);
  void note_part(const StreamGather& gathered, u32 from, u32 to, u32 size);
  void keep_rest();
  void keep_marked_rest(const StreamGather& gathered, u32 from, u32 to);
  void execute_here(Time now);

  // --- engine_receive.cc
  [[nodiscard]] bool receives() const;
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool on_step(SegmentReader::Step step);
  [[nodiscard]] std::optional<TerminateReason> check_segment();
  [[nodiscard]] std::optional<TerminateReason> check_to_requester();
  [[nodiscard]] std::optional<TerminateReason> place_part();
  [[nodiscard]] std::optional<TerminateReason> finish_segment();
  void on_terminate(Bytes payload);
  void note_executed();
  void note_progress();
  void terminate(TerminateReason reason);
  void terminate_for_segment(TerminateReason reason);

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  CopyLane *const send_copies_, *const receive_copies_;
  EngineCounters counters_;
  StreamCounts counts_;
  QPFault fault_;
  Requester requester_;
  Responder responder_;
  SegmentReader reader_;
  LocalProgress* const progress_;  // for a peer on this host; nullptr: none is told
  u32 sent_messages_ = 0, received_messages_ = 0;
  StreamAgreement agreement_;
  u32 max_ulpdu_ = 0;
  bool is_open_ = false;                 // between begin() and the end
  bool has_heard_ = true;                // a message of the peer: it is ready
  Time ready_deadline_ = Time::never();  // then it is taken to be
  bool peer_ended_ = false, is_broken_ = false;
  bool fatal_event_ = false, ended_event_ = false;

  Cursor cursor_;             // its `source` is kNone between messages
  u32 part_sent_ = 0;         // of the FPDU at the cursor
  CRC32C part_crc_;           // over that
  std::vector<u8> far_part_;  // what is left of it, if its payload was in far memory
  std::vector<u8> rest_;  // of such an FPDU, of a queue that is flushed or a stream with markers
  std::size_t rest_sent_ = 0;
  std::vector<u8> plain_, marked_;  // an FPDU without its markers and CRC, and with them

  RDMAPOpcode opcode_ = RDMAPOpcode::kWrite;  // of the segment that comes
  std::optional<TerminateReason> to_send_, sent_, received_;
  std::array<u8, RDMAPAtomicRequest::kSize> terminate_payload_{};
  u32 terminate_bytes_ = 0;
};

}  // namespace verbena::iwarp
