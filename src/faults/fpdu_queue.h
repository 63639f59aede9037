// FPDUQueue: one direction of an iWARP connection with faults in its way. Rules see FPDUs (RFC
// 5044, 4.1) as they see packets elsewhere; TCP hides part of what happens to them:
//
//   dropped      TCP sends it again after a timeout, which doubles each time; what follows waits
//   for
//                it, as it does in a TCP receiver
//   late         what follows is late, too: nothing overtakes anything
//   corrupted    under the checksum of TCP, so that MPA's CRC has to find it
//
// Sans-IO: bytes in, bytes out, time is an argument. Bytes come in any pieces and leave as soon
// as they may: an FPDU need not be whole.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/filter.h"

namespace verbena::faults {

// The first rule that has no meaning on a TCP connection, and why; nullopt: all have one.
[[nodiscard]] std::optional<std::string> mistake_on_streams(std::span<const Rule> rules);

// TCP fits its rate to the path instead of overrunning it: a rate limit delays, and loses nothing.
void fit_to_streams(std::vector<Rule>& rules);

class FPDUQueue {
 public:
  // As Linux: TCP_RTO_MIN and a round trip of 1 ms; TCP_RTO_MAX.
  static constexpr Duration kFirstTimeout = ms(201), kLongestTimeout = sec(120);

  FPDUQueue(Direction direction, QPN local_qp, const GID& peer);

  // The stream has MPA markers. Before its first byte.
  void expect_markers() { has_markers_ = true; }
  // Takes bytes of the stream. `filter`: nullptr: there are no rules any more.
  void push(Bytes bytes, FaultFilter* filter, Time now);
  // The bytes that may go on, in one piece; empty: none may yet. Valid until the next call.
  [[nodiscard]] Bytes front(FaultFilter* filter, Time now);
  // So many bytes of front() have gone on.
  void pop(std::size_t bytes);
  // When front() has something again, or judges again.
  [[nodiscard]] Time next_due() const;
  [[nodiscard]] std::size_t bytes() const { return held_; }

  // Rules that break objects rather than FPDUs: whether one has applied since the last call.
  [[nodiscard]] bool take_broken_qp() { return std::exchange(breaks_qp_, false); }
  [[nodiscard]] bool take_overrun_cq() { return std::exchange(overruns_cq_, false); }

 private:
  struct FPDU {
    std::vector<u8> bytes;   // as they have come
    std::size_t size = 0;    // 0: its header is not whole
    std::size_t taken = 0;   // by pop()
    Time due;                // not before
    u32 losses = 0;          // one after the other
    bool is_lost = false;    // judged again at `due`
    std::vector<u64> flips;  // bits
    PacketInfo info;
  };

  void append(FPDU& fpdu, Bytes bytes);
  void begin(FPDU& fpdu, FaultFilter* filter, Time now);
  void judge(FPDU& fpdu, FaultFilter* filter, Time now);
  [[nodiscard]] PacketInfo info_of(const FPDU& fpdu);

  [[nodiscard]] std::size_t marker_before() const;

  Direction direction_;
  QPN local_qp_;
  GID peer_;
  std::deque<FPDU> fpdus_;
  std::size_t held_ = 0;
  bool has_markers_ = false;
  u64 position_ = 0;  // of the FPDU that comes, in the stream
  // A message's last segment has not come. READ responses and WRITEs of one direction are not mixed
  // within a message, and untagged messages follow one another.
  bool in_tagged_message_ = false, in_untagged_message_ = false;
  bool breaks_qp_ = false, overruns_cq_ = false;
};

}  // namespace verbena::faults
