// Settings of a TCP connection, the same at both ends. Defaults are those of Linux if RFCs leave a
// choice, with a note.
#pragma once

#include "base/time.h"
#include "congestion/tcp/window_control.h"

namespace verbena::tcp {

struct Config {
  static constexpr u32 kLeastMSS = 64, kMostMSS = 9600;
  static constexpr u64 kMostWindow = (u64{64} << 20) - 1;  // bytes; RFC 7323, 2.3 allows 1 GiB

  // Bytes of a full segment. 8948: an IP packet of 9000 with timestamps (RFC 7323).
  u32 mss = 8948;
  u32 initial_window = 10;  // segments. RFC 6928
  ControlKind control = ControlKind::kCUBIC;
  bool sack = true;        // RFC 2018, 6675; otherwise NewReno, RFC 6582
  bool rack = true;        // RFC 8985, with tail loss probes; needs SACK
  bool ecn = false;        // RFC 3168; DCTCP has its own echo, RFC 8257
  bool handshake = false;  // a SYN and its answer before the first byte
  // RFC 6298, 2.4 says a second; Linux has 200 ms (TCP_RTO_MIN).
  Duration rto_min = ms(200);
  Duration rto_initial = sec(1);  // 2.1
  Duration rto_max = sec(120);    // 2.5 requires at least 60 s; Linux: TCP_RTO_MAX
  u32 retries = 15;  // timeouts in a row after which the connection fails: tcp_retries2
  u64 receive_buffer = 16u << 20;  // bytes: the largest window that is advertised
  // An acknowledgement for so many full segments, or after so long: RFC 5681, 4.2 says 2 and less
  // than 500 ms; Linux: TCP_DELACK_MIN.
  u32 segments_per_ack = 2;
  Duration ack_delay = ms(40);

  [[nodiscard]] bool detects_by_time() const { return sack && rack; }
  [[nodiscard]] bool valid() const {
    return mss >= kLeastMSS && mss <= kMostMSS && initial_window >= 1 && segments_per_ack >= 1 &&
           receive_buffer >= mss && receive_buffer <= kMostWindow && rto_min > Duration() &&
           rto_min <= rto_max && rto_initial > Duration() && retries >= 1;
  }
};

}  // namespace verbena::tcp
