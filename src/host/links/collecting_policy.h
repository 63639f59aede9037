// CollectingPolicy: when to leave what streams in where it is, in the socket, for a while.
//
// Two cores that stream through a socket hand the same few pages of the kernel to and fro: the
// sender fills those that the receiver has just emptied, and waits for each line to leave the
// receiver's cache. Where more collects in the socket than that cache holds, most lines have left
// by themselves, and the sender's copy takes half as long (docs/performance.md). So a receiver of
// a dense stream looks again only when much has collected. If nothing is added for a while, the
// sender waits: its window or its work is at its end. Then all is taken at once, and less is to
// collect the next time, or nothing for a pause, which doubles each time.
//
// Pure logic: no socket, no clock. Octets are as the kernel accounts its receive buffer.
#pragma once

#include "base/time.h"
#include "base/types.h"

namespace verbena::host {

class CollectingPolicy {
 public:
  static constexpr u64 kMost = 1280 << 10;  // to collect: more than the L2 cache of a core
  static constexpr u64 kLeast = 512 << 10;
  static constexpr u64 kGrowth = 4 << 10;         // of what is to collect, each time that it has
  static constexpr u64 kLeastBuffer = 4 * kMost;  // in which so much may collect
  // Four times as long as one burst of 64 KiB takes to come, where a stream is slow.
  static constexpr Duration kPatience = us(80);
  // The longest time to collect: the sender's timers wait for acknowledgements meanwhile.
  static constexpr Duration kLongest = us(500);
  static constexpr u64 kDense = 1 << 20;  // in kDenseTime
  static constexpr Duration kDenseTime = us(800);
  static constexpr Duration kBreak = us(100);  // after which it is a stream no more
  static constexpr Duration kLeastPause = ms(1), kLongestPause = sec(1);

  explicit CollectingPolicy(u64 buffer) : possible_(buffer >= kLeastBuffer) {}

  // Returns true if the received frames were dense: then report an empty socket by on_empty().
  [[nodiscard]] bool is_dense() const { return dense_; }
  // Returns true if the socket is not to be read until may_take() returns true.
  [[nodiscard]] bool collects() const { return collects_; }
  // `queued` is the content of the socket. Returns true if it collects no longer: read the socket
  // until it is empty.
  [[nodiscard]] bool may_take(u64 queued, Time now);
  // The socket is read now, for another reason.
  void stop() { collects_ = false; }

  void on_taken(u64 octets, Time now);  // at once
  void on_empty(Time now);              // it has been looked at

 private:
  void on_standstill(Time now);
  void forget();

  bool possible_;
  bool collects_ = false;
  u64 target_ = kMost, queued_ = 0;
  Time began_, grew_;  // collecting; queued_, last
  Duration pause_ = kLeastPause;
  Time paused_until_;

  bool dense_ = false;
  u64 counted_ = 0;
  Time counted_since_, taken_;
};

}  // namespace verbena::host
