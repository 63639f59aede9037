// The receiving end of a TCP connection that is used one way: segments in, acknowledgements out,
// and messages, each once and in the order in which they were written. RFC 9293 (3.10.7.4), 5681
// (4.2), 2018, 2883, 3168 (6.1.3), 8257 (3.2).
// Sans-IO, deterministic, one owner, as the sender.
// Contract: after any on_*(), drain poll_acknowledgement() and poll_message(), then re-read
// next_timer().
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "transport/tcp/config.h"
#include "transport/tcp/segment.h"

namespace verbena::tcp {

class Receiver {
 public:
  // `config` outlives it, and is valid().
  explicit Receiver(const Config& config) : config_(config) {}

  void on_segment(const Segment& segment, Time now);
  void on_timer(Time now);  // at or after next_timer(); an early call does nothing
  [[nodiscard]] bool poll_acknowledgement(Segment& out);
  // Returns the word of a message whose bytes have all arrived, and those of all messages before.
  [[nodiscard]] std::optional<u32> poll_message();
  [[nodiscard]] Time next_timer() const { return timer_; }

  // The program has taken so many bytes. Without keep_unread() it takes all bytes at once.
  void on_read(u64 bytes);
  // From now on the program calls on_read().
  void keep_unread() { keeps_unread_ = true; }

  [[nodiscard]] u64 received() const { return next_; }          // bytes without a gap
  [[nodiscard]] u64 duplicates() const { return duplicates_; }  // segments that it already had
  // Ranges received beyond a gap.
  [[nodiscard]] std::size_t gaps() const { return beyond_.size(); }

 private:
  enum class Urgency : u8 { kMayWait, kNow };
  struct Push {
    u64 end = 0;
    u32 word = 0;
  };

  [[nodiscard]] Urgency take(const Segment& segment);
  void take_beyond(const Segment& segment);
  void note_push(const Segment& segment);
  void close_gap();
  void note_mark(const Segment& segment);
  void acknowledge();
  void fill(Segment& out);
  [[nodiscard]] u64 room() const;

  const Config& config_;
  u64 next_ = 0;  // bytes before it have arrived: RCV.NXT
  u64 unread_ = 0;
  u64 told_end_ = config_.receive_buffer;  // of the window that was advertised
  bool keeps_unread_ = false;
  std::vector<SACKBlock> beyond_;  // in order, apart from each other
  std::deque<u64> newest_;         // beginnings of these, the one that grew last first
  std::vector<Push> pushes_;       // ends of messages, in order, from the first not reported
  std::vector<Segment> owed_;      // acknowledgements to be sent now; few
  u32 unacknowledged_ = 0;         // segments
  bool has_duplicate_ = false, answers_syn_ = false;
  bool echoes_ = false;  // ECE
  u64 duplicates_ = 0;
  Time timer_ = Time::never();
};

}  // namespace verbena::tcp
