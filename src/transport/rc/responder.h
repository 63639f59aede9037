// The responder half of one RC QP: request packets in, memory changed, response packets and receive
// CQEs out. IBTA Vol 1, 9.7.4 (request validation), 9.7.5 (responses), 9.9.3 (responder errors).
// Sans-IO, by the contract of transport/engine.h.
//
// The responder drops early packets (go-back-N), or keeps them if both ends have selective repeat
// (reorder_buffer.h). So requests execute strictly in PSN order, each once. Duplicates of SENDs and
// WRITEs are only acknowledged again, those of READs executed again, all others answered from
// memory. Nothing is written before key, bounds, rights and length of the whole request have been
// checked.
#pragma once

#include <memory>
#include <optional>

#include "transport/datagram_engine.h"
#include "transport/rc/limits.h"
#include "transport/rc/reorder_buffer.h"
#include "transport/rc/response_queue.h"

namespace verbena {

class RCResponder {
 public:
  // `fault`: receives the refusal that ends the QP.
  RCResponder(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
              ResponderFault& fault);

  void on_state(QPState from);
  void on_request(const PacketView& packet);
  // The same for a SEND of one packet in order, in the common case (common_case.cc): returns where
  // its payload goes, or nullopt: then call on_request().
  [[nodiscard]] std::optional<u8*> expects_send(const PacketView& packet) const;
  // Executes it; its completion goes to `out`. Returns false if memory has gone: call on_request(),
  // which reports it.
  [[nodiscard]] bool take_send(const PacketView& packet, u8* to, CQE& out);
  // The same as on_request() for each packet of a train, which are middle packets of a message.
  // Returns false, and does nothing, unless they are in order and fit the message.
  [[nodiscard]] bool take_train(const PacketView& packet, u32 packets);
  // The write of the request at `mark.psn` has failed after it was executed.
  void on_copy_failed(const CopyMark& mark);
  // Frees the receives of an SRQ that were taken and will not complete here: the QP is destroyed.
  void give_back_receives();
  [[nodiscard]] bool on_receive_posted();
  [[nodiscard]] bool is_idle() const { return responses_.empty(); }
  // `at_most`: so many middle packets of a READ response may leave as a train.
  [[nodiscard]] bool poll_packet(TxPacket& out, u32 at_most = 1);
  // The same, if the response is not READ data.
  [[nodiscard]] bool poll_acknowledgement(TxPacket& out);
  [[nodiscard]] bool poll_cqe(CQE& out);
  [[nodiscard]] std::optional<EngineEvent> poll_event();
  // Returns false if poll_cqe() would return nothing.
  [[nodiscard]] bool may_complete() const {
    return cqe_ || (reorder_buffer_ != nullptr && !reorder_buffer_->empty()) ||
           qp_.state == QPState::kError;
  }
  // Returns false if poll_event() would return nothing.
  [[nodiscard]] bool may_raise() const { return event_ || fatal_pending_; }

 private:
  enum class Message : u8 { kNone, kSend, kWrite };

  // responder.cc: order and execution
  void execute(const PacketView& packet);
  bool in_sequence(const OpcodeTraits& traits, Op op) const;
  bool right_length(const OpcodeTraits& traits, std::size_t payload) const;
  void on_send(const PacketView& packet, const OpcodeTraits& traits, u32 packets = 1);
  void on_write(const PacketView& packet, const OpcodeTraits& traits, u32 packets = 1);
  void on_read(const PacketView& packet);
  void on_atomic(const PacketView& packet);
  MemoryFault execute_atomic(const PacketView& packet, u8* at, ResponderResource& resource);
  void on_flush(const PacketView& packet);
  void on_atomic_write(const PacketView& packet);
  void confirm(const PacketView& packet);
  MemoryFault flush_fault(const FETH& feth, const RETH& reth, Access need) const;
  void make_room();
  void on_early(const PacketView& packet, u32 ahead);
  void execute_kept();
  void forget_kept(u32 psns);
  void tell_of_kept();
  bool keeps_for(const PacketView& packet) const {
    return reorder_buffer_ != nullptr && packet.headers.bth.takes_sack;
  }
  void on_duplicate(const PacketView& packet);
  void on_duplicate_read(const PacketView& packet);
  bool begin_write(const PacketView& packet, Resolved& to);
  bool room_for_rd_atomic(const PacketView& packet);
  [[nodiscard]] ReceiveQueue* receive_source() const;
  bool take_receive();
  void complete_receive(CompletionOp op, u32 bytes, const PacketView& packet);
  void describe_receive(CompletionOp op, u64 wr_id, u32 bytes, const PacketView& packet,
                        CQE& out) const;
  bool invalidate(RKey key);
  // For far memory: record the message to which its writes belong.
  void mark_receive() {
    if (copies_ != nullptr) copies_->mark({.psn = expected_.value(), .is_receive = true});
  }
  void mark_remote(RKey key, u64 address, u32 length_bytes) {
    if (copies_ != nullptr)
      copies_->mark({.psn = expected_.value(),
                     .key = key.value,
                     .address = address,
                     .length_bytes = length_bytes});
  }
  void accept(const PacketView& packet, u32 psns, bool message_done);
  void acknowledge();
  // Returns true if all is executed, writes to far memory included.
  [[nodiscard]] bool has_executed_all() const {
    return copies_ == nullptr || copies_->has_ended(copies_->begun());
  }
  void expect(PSN psn) {
    expected_ = psn;
    if (local_progress_ != nullptr && has_executed_all()) local_progress_->note(qp_.qpn, psn);
  }
  bool choose_srq(u32 number);
  // The PD of memory that requests name, and of receives.
  PDId request_pd() const { return xrc_ != nullptr ? xrc_pd_ : qp_.pd; }
  PDId receive_pd() const { return srq_pd_.value_or(request_pd()); }
  u32 mtu() const { return limits_.packet_size(qp_.path_mtu); }

  // refusals
  void rnr_nak();
  void sequence_nak();
  void invalid_request(const PacketView& packet, Refusal why);
  void access_error(const PacketView& packet, MemoryFault why);
  void receive_error(const PacketView& packet, Refusal why);
  void note_fault(const PacketView& packet, Refusal why);
  void fail_receive(WQEStatus status);
  // Returns true if the packet is of the message that fills the held receive, and not the last.
  [[nodiscard]] bool fills_held_receive(PSN psn) const {
    return holds_receive_ && u64{psn.distance_to(expected_)} * mtu() <= offset_;
  }
  void nak_and_fail(NAKCode code, std::optional<EngineEvent> event);

  // response_builder.cc
  bool build_read(Response& response, u32 at_most, TxPacket& out);
  bool begin_response();
  std::optional<Bytes> next_of_read(const Response& response, u32 length, MemoryFault& why) const;
  std::optional<Bytes> train_of_read(const Response& response, u32 at_most) const;
  void note_unreadable(const Response& response, MemoryFault why);
  void refuse_read(const Response& response, MemoryFault why);
  void build_headers(const Response& response, Op op, TxPacket& out) const;
  u8 credits();

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  ReceiveQueue& receive_queue_;
  const bool shared_;
  const std::optional<PDId> srq_pd_;
  const XRCReceives* const xrc_;  // of an XRC target; nullptr: RC
  LocalPackets* const local_packets_;
  LocalProgress* const local_progress_;
  const RCLimits limits_;
  EngineCounters& counters_;
  ResponderFault& fault_;
  CopyLane* const copies_;
  ResponseQueue responses_;
  std::unique_ptr<ReorderBuffer> reorder_buffer_;  // nullptr: go-back-N

  PSN expected_;  // ePSN
  MSN msn_;
  bool nak_sent_ = false;  // for this ePSN: later packets are dropped without an answer
  bool failed_ = false;    // only queued responses are sent
  Message message_ = Message::kNone;
  u64 offset_ = 0;   // bytes of the message delivered so far
  RETH write_;       // of the current WRITE
  u32 xrc_srq_ = 0;  // XRC: the current message's SRQ,
  PDId xrc_pd_;      // and that SRQ's PD
  bool holds_receive_ = false;
  ReceiveWQE receive_;
  bool advertised_zero_ = false;  // the last advertised credits were none
  bool established_ = false;

  std::optional<CQE> cqe_;
  std::optional<EngineEvent> event_;
  bool fatal_pending_ = false;
};

}  // namespace verbena
