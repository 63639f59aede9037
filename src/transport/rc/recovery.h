// Recovery: when a requester repeats requests, and how often it still may. IBTA Vol 1, 9.7.5.2 and
// 9.7.6 (retries, RNR NAK, timeout). It counts retries and keeps times; SendWindow knows the
// packets.
//
// In silence the requester sends the oldest packet again as a probe, without moving the cursor: a
// responder answers it, new or duplicate. If nothing follows its answer, the requester repeats the
// rest too. This consumes no retries.
#pragma once

#include <algorithm>
#include <optional>

#include "transport/qp_attributes.h"
#include "transport/rc/path_allowances.h"
#include "transport/rc/probe_timer.h"

namespace verbena {

class Recovery {
 public:
  // Both outlive this.
  Recovery(const QPAttributes& qp, const PathAllowances& path)
      : qp_(qp), path_(path), probes_(path.min_probe_timeout) {}

  void reset();
  void begin(Time now);  // RTS

  // --- packets and their answers
  // A packet leaves that was never sent before and will be answered.
  void on_sent(PSN psn, Time now) { probes_.on_sent(psn, now); }
  // The silence begins now: nothing was in flight, or the delay was not the peer's.
  void restart_timer(Time now) { last_news_ = now; }
  // The peer acknowledges something new, or executes it.
  void on_news(Time now);
  // All before `unacked` is acknowledged.
  void on_acknowledged(PSN unacked, Time now);
  // Packets in flight are repeated: their answers cannot be told from those of the first.
  void on_repeated() { probes_.on_resent(); }
  // The same of all packets in flight.
  void on_moved_back();

  // --- retries. They return false if none is left.
  [[nodiscard]] bool take_retry();
  [[nodiscard]] bool take_rnr_retry();
  // Returns true once for each gap: a response that implies that an earlier one is lost.
  [[nodiscard]] bool is_new_gap(PSN unacked);
  void forget_gap() { gap_at_.reset(); }

  // --- a pause that the peer has asked for by an RNR NAK
  void pause(Time until) { pause_until_ = until; }
  [[nodiscard]] bool is_paused() const { return pause_until_.has_value(); }
  void end_pause() { pause_until_.reset(); }

  // --- probes
  [[nodiscard]] bool is_probe_due() const { return probe_due_; }
  [[nodiscard]] bool is_probing() const { return probe_.has_value(); }
  // The timer has run out. Returns false if the peer has just answered a probe: then the packets
  // before it are lost.
  [[nodiscard]] bool take_probe();
  // The probe has left. It ends at `end`, all packets in flight with it at `in_flight_end`.
  void on_probe_sent(PSN end, PSN in_flight_end);
  // It cannot be built, and what stopped it has moved the cursor back.
  void drop_probe() { probe_due_ = false; }

  // --- time
  [[nodiscard]] Time ack_timeout_at() const;
  // Returns the time of the next probe or timeout, while responses are missing.
  [[nodiscard]] Time next_timeout() const {
    return std::min(ack_timeout_at(), probes_.next(last_news_));
  }
  [[nodiscard]] Time pause_until() const { return *pause_until_; }

 private:
  struct Probe {
    PSN end, in_flight_end;
  };

  const QPAttributes& qp_;
  const PathAllowances& path_;
  u8 retries_left_ = 0, rnr_retries_left_ = 0;
  Time last_news_;  // or the first packet after idleness
  std::optional<Time> pause_until_;
  std::optional<PSN> gap_at_;  // one implied NAK for one gap
  ProbeTimer probes_;
  std::optional<Probe> probe_;  // sent, and not answered
  bool probe_due_ = false;
};

}  // namespace verbena
