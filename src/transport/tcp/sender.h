// The sending end of a TCP connection that is used one way: bytes in, segments out. RFC 9293
// (3.8), 5681, 6298, 6675 or 8985, 6582, 3042, 3168, 8257.
// Sans-IO: no socket, clock, thread or lock. Same calls in the same order give the same outputs,
// bit for bit. One owner; not thread-safe. Contract: after any on_*(), take every poll_segment()
// for which the link has room, then re-read next_timer(). `now` never goes back.
//
// Bytes are counted, and have no values. A segment never has parts of two messages (as with
// TCP_NODELAY and MSG_EOR), and the last segment of each message is pushed.
#pragma once

#include <deque>
#include <optional>

#include "transport/tcp/config.h"
#include "transport/tcp/loss_detector.h"
#include "transport/tcp/outstanding.h"
#include "transport/tcp/round_trip.h"
#include "transport/tcp/segment.h"

namespace verbena::tcp {

struct SenderCounters {
  u64 segments = 0;         // with bytes, those sent again included
  u64 retransmissions = 0;  // segments
  u64 timeouts = 0;
  u64 probes = 0;      // of the tail. RFC 8985, 7
  u64 recoveries = 0;  // windows in which a loss was found without a timeout
  u64 echoes = 0;      // windows that were reduced because of ECN
};

class Sender {
 public:
  // `config` outlives it, and is valid().
  explicit Sender(const Config& config);

  // Appends a message: its bytes, at least 1, and a word that travels with its last byte.
  void on_write(u64 bytes, u32 word, Time now);
  void on_acknowledgement(const Segment& segment, Time now);
  void on_timer(Time now);  // at or after next_timer(); an early call does nothing
  [[nodiscard]] bool poll_segment(Time now, Segment& out);
  [[nodiscard]] Time next_timer() const;

  [[nodiscard]] u64 written() const { return written_; }            // bytes
  [[nodiscard]] u64 acknowledged() const { return acknowledged_; }  // bytes, without a gap
  [[nodiscard]] bool has_failed() const { return failed_; }         // too many timeouts
  [[nodiscard]] u64 window() const { return control_.window(); }    // of congestion control
  [[nodiscard]] u64 in_flight() const { return outstanding_.in_flight(); }
  [[nodiscard]] const WindowControl& control() const { return control_; }
  [[nodiscard]] const RoundTrip& round_trip() const { return round_trip_; }
  [[nodiscard]] const SenderCounters& counters() const { return counters_; }

 private:
  enum class State : u8 {
    kConnecting,  // the SYN is not answered
    kOpen,
    kRecovery,  // a loss was found, and the data sent before is not acknowledged yet
    kLoss,      // likewise, after a timeout
  };
  struct Message {
    u64 end = 0;
    u32 word = 0;
  };
  struct Delivered {  // by one acknowledgement
    u64 bytes = 0;    // newly, beyond a gap or not
    u64 advanced = 0;
    std::optional<Duration> round_trip;
  };

  void on_connected(Time now);
  void take_blocks(const Segment& segment, Delivered& delivered, Time now);
  void take_acknowledgement(const Segment& segment, Delivered& delivered, Time now);
  void note_received(const SentSegment& segment, Delivered& delivered, Time now);
  void count_duplicates(const Segment& segment, const Delivered& delivered);
  void repair_partially(const Delivered& delivered);
  void look_for_losses(Time now);
  void begin_recovery(Time now);
  void end_recovery();
  void judge_probe(const Segment& segment, Time now);
  void take_echo(const Segment& segment, Time now);
  void mark_lost(SentSegment& segment);
  [[nodiscard]] u64 in_flight_as_told() const;
  [[nodiscard]] bool poll_connecting(Time now, Segment& out);
  [[nodiscard]] bool poll_lost(Time now, Segment& out);
  [[nodiscard]] bool poll_new(Time now, Segment& out);
  [[nodiscard]] u32 next_length() const;
  void send_again(SentSegment& segment, Time now, Segment& out);
  void fill(const SentSegment& segment, Segment& out) const;
  void arm_timeout(Time now);
  void arm_probe(Time now);
  void on_timeout(Time now);
  void on_probe_timer(Time now);

  const Config& config_;
  WindowControl control_;
  RoundTrip round_trip_;
  LossDetector detector_;
  Outstanding outstanding_;
  State state_;
  bool failed_ = false;
  u64 written_ = 0, next_ = 0, acknowledged_ = 0;
  std::deque<Message> messages_;  // messages that are not completely sent
  u64 window_end_;                // the receiver's buffer ends there
  u64 recovery_end_ = 0;          // the end of the data sent when the recovery began
  u64 look_for_lost_from_ = 0;    // no segment below must be sent again
  u64 lost_ = 0;                  // segments to be sent again
  u32 duplicates_ = 0;            // without SACK: segments that have left the network
  u64 reduced_until_ = 0;         // no echo counts before this is acknowledged
  bool owes_cwr_ = false;
  bool connect_again_ = false;
  bool may_send_one_ = false;  // whatever the window says: a probe, the first of a recovery
  u64 probe_end_ = 0;          // of a tail loss probe in flight; 0: none
  bool probe_is_new_ = false;
  u32 timeouts_ = 0;  // in a row
  Time timeout_ = Time::never(), probe_ = Time::never();
  SenderCounters counters_;
};

}  // namespace verbena::tcp
