// Engine: the transport of one QP, as the device drives it: the verbs side, which all transports
// share. The wire side is one of two: packets of a datagram network (transport/datagram_engine.h:
// RC, UC, UD) or one byte stream (transport/stream_engine.h: iWARP).
// Sans-IO: no socket, clock, thread, lock, global or log sink; no allocation after construction.
// Same calls in the same order give the same outputs, bit for bit. One owner; not thread-safe.
// Contract: after any post_send(), on_*() drain the wire side, poll_send_cqe(), poll_receive_cqe()
// and poll_event(), then re-read next_timer(). `now` never goes back.
#pragma once

#include <optional>

#include "base/time.h"
#include "congestion/congestion_control.h"
#include "transport/cqe.h"
#include "transport/local/local_packets.h"
#include "transport/local/local_progress.h"
#include "transport/peer_memory.h"
#include "transport/poll_habit.h"
#include "transport/qp_attributes.h"
#include "transport/qp_fault.h"
#include "transport/receive_queue.h"
#include "transport/send_queue.h"
#include "transport/shared_window.h"
#include "transport/xrc_receives.h"

namespace verbena {

// EngineOutputs: the outputs that an engine may have.
struct EngineOutputs {  // bits: bytes that are stored one by one and read as a word are waited for
  bool send_cqe : 1 = true, receive_cqe : 1 = true, event : 1 = true;
  bool packet : 1 = true;  // or bytes of a stream
  // No output, but a possible effect of a packet: a timer to be looked up.
  bool sooner_timer : 1 = true;
  [[nodiscard]] bool reports() const { return send_cqe || receive_cqe || event; }
};

constexpr Duration kDeferral = us(200);  // of work that waits for a poll: run_deferred()

enum class EngineEvent : u8 {
  kFatal,                     // the QP goes to Error
  kEnded,                     // the same, and nothing is wrong: the connection has ended
  kSQError,                   // the QP goes to SQE (UC, UD). IBTA 10.3.1.6
  kSQDrained,                 // SQD: all started work is done. IBTA 10.3.1.5
  kCommunicationEstablished,  // first packet in RTR. IBTA 11.6.3.1
  kRequestError,              // a request that is not allowed; goes with kFatal. 11.6.3.2
  kAccessError,               // a request without the right; goes with kFatal
};

// Counters of one QP's transport; the device sums them. Names as in hw_counters of Linux.
struct EngineCounters {
  u64 out_of_sequence = 0;  // requests ahead of the expected PSN
  u64 duplicate_request = 0;
  u64 implied_nak_seq_err = 0;  // ACK beyond an outstanding READ
  u64 packet_seq_err = 0;       // NAK sequence error received
  u64 rnr_nak_retry_err = 0;    // RNR NAKs received
  u64 rnr_naks_sent = 0;        // for want of a receive
  u64 local_ack_timeout_err = 0;
  u64 resp_local_length_error = 0;
  u64 resp_remote_access_errors = 0;
  u64 req_remote_access_errors = 0;
  u64 req_remote_invalid_request = 0;
  u64 req_remote_operational_errors = 0;
  u64 resp_cqe_error = 0, req_cqe_error = 0;
  u64 rx_write_requests = 0, rx_read_requests = 0, rx_atomic_requests = 0;
  u64 rx_dropped = 0;        // silently dropped by the rules of the service
  u64 roce_adp_retrans = 0;  // packets sent again before the ACK timeout, unasked
  u64 retransmitted_packets = 0;
  // Done without packets; `packets` is how many there would have been.
  u64 local_write_requests = 0, local_write_packets = 0, local_write_bytes = 0;
  u64 local_read_requests = 0, local_read_packets = 0, local_read_bytes = 0;
  u64 local_acknowledgements = 0;  // that were no frame
};

class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual PostError post_send(const SendWR& wr, Time now) = 0;
  // The last `count` posted are as if they never were. Precondition: no other call since.
  virtual void take_back_sends(u32 count) = 0;
  // The program has polled CQEs that report so many entries of the send queue.
  virtual void free_sends(u32 count) = 0;
  // Frees the receives of an SRQ that were taken and will not complete here: the QP goes.
  virtual void give_back_receives() = 0;
  // The state in the attributes has just changed from `from` (its legality checked by the device).
  // To Error: remaining work is flushed. To Reset: everything is forgotten without a completion.
  virtual void on_state(QPState from, Time now) = 0;
  // A receive was posted (own queue or SRQ). Returns false if it causes no output.
  [[nodiscard]] virtual bool on_receive_posted(Time now) = 0;
  // A write to far memory has failed whose success was already reported inside the engine. The
  // owner of the completions has handled those that are not delivered yet, and the QP ends.
  // on_send_copy_failed() is for the result of a READ or atomic, on_receive_copy_failed() for a
  // request.
  virtual void on_send_copy_failed() {}
  virtual void on_receive_copy_failed(const CopyMark&) {}
  virtual void on_timer(Time now) = 0;  // at or after next_timer(); an early call does nothing
  // The program polls, or is about to sleep: the engine now does deferred work. Returns false if
  // there was none. An engine that has deferred work has a timer for it, at most kDeferral later.
  [[nodiscard]] virtual bool run_deferred(Time) { return false; }

  // Returns true if the wire side has no output until the next input, whatever the time.
  [[nodiscard]] virtual bool is_idle() { return false; }
  // Returns the calls below that may have an output; this is cheaper than to make each. False means
  // that the call has none until the next input or output, whatever the time; true promises
  // nothing.
  [[nodiscard]] virtual EngineOutputs outputs() const { return {}; }
  [[nodiscard]] virtual bool poll_send_cqe(CQE& out) = 0;
  [[nodiscard]] virtual bool poll_receive_cqe(CQE& out) = 0;
  [[nodiscard]] virtual std::optional<EngineEvent> poll_event() = 0;
  [[nodiscard]] virtual Time next_timer() const = 0;  // Time::never(): nothing armed
  [[nodiscard]] virtual const EngineCounters& counters() const = 0;
  // SQD: work that had started is not done yet. IBTA 10.3.1.5
  [[nodiscard]] virtual bool is_draining() const = 0;
  // Returns the first error since Reset, in each half.
  [[nodiscard]] virtual const QPFault& fault() const = 0;
};

// EngineParts: the parts from which every engine is built. All referenced objects outlive it.
struct EngineParts {
  const QPAttributes& attributes;
  ProtectionTable& memory;
  ReceiveQueue& receive_queue;        // own or shared
  bool shared_receive_queue = false;  // an SRQ is not flushed with the QP
  SendQueueLimits send_limits;
  std::optional<PDId> srq_pd =
      {};  // the SRQ's, which its receives are checked against. IBTA 10.2.9.2
  const XRCReceives* xrc_receives = nullptr;  // of an XRC target, which uses no `receive_queue`
  CongestionControl* congestion = nullptr;    // if it wants_acks(): they are told to it
  PeerMemoryFinder* peers = nullptr;          // nullptr: all goes as packets
  PollHabit* habit = nullptr;                 // of the program. nullptr: no WRITE is deferred
  SharedWindow* window = nullptr;             // nullptr: only the requester's own counts
  LocalPackets* local_packets = nullptr;      // of RC. nullptr: all packets are polled out
  LocalProgress* local_progress = nullptr;    // of RC, likewise. nullptr: nobody looks there
  CopyLane* send_copies = nullptr;            // nullptr: late far memory counts as gone
  CopyLane* receive_copies = nullptr;         // likewise
};

}  // namespace verbena
