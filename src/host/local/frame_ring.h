// FrameRing: frames from one process to one other, in order, through memory that both map: one
// writes, one reads, nobody waits. Neither trusts what the other can change: a ring that makes no
// sense is broken, takes nothing more and gives nothing more.
//   record: | RingFrame | transport (BTH .. ICRC, which is not filled in) | padding to 8 bytes |
// A new writer or reader goes on where another has left off.
// A reader that looks at the ring again and again says so, and the writer need not ring for it
// (doorbells.h): two cache lines less that go from core to core for each frame.
// A record never goes around the end: a RingFrame of size kSkip leads to the start.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "device/frame.h"

namespace verbena::host {

struct RingFrame {
  static constexpr u32 kSkip = ~0u;
  u32 size = 0;  // of the transport packet
  u16 udp_source_port = 0;
  u8 traffic_class = 0, hop_limit = 0;
  GID source{}, destination{};
};

class FrameRing {
 public:
  static constexpr u64 kBytes = 2u << 20;  // twice the largest window of a QP
  static constexpr u32 kMaxFrame = kMaxHeadersSize + 4096 + 4;

 private:
  friend class FrameRingWriter;
  friend class FrameRingReader;
  // Counts of bytes that never wrap in practice.
  alignas(64) std::atomic<u64> written_;
  alignas(64) std::atomic<u64> read_;
  alignas(64) std::atomic<u32> watched_;  // 1: by its reader. Written by the reader
  alignas(64) std::array<u8, kBytes> bytes_;
};

class FrameRingWriter {
 public:
  explicit FrameRingWriter(FrameRing& ring) : ring_(ring), end_(ring.written_.load()) {}

  // Where to write frame.size bytes of transport packet, before publish(); empty: full.
  [[nodiscard]] MutableBytes add(const RingFrame& frame);
  void take_back() { end_ = before_last_; }  // what was added last
  // True when there is something that was not published before.
  bool publish();
  // Whether the reader will find what has been published by itself.
  [[nodiscard]] bool is_watched() {
    // An exchange, not a load: either we see that it watches no more, or it sees what is there.
    return ring_.watched_.fetch_add(0, std::memory_order_seq_cst) != 0;
  }

 private:
  [[nodiscard]] u8* at(u64 position) { return ring_.bytes_.data() + position % FrameRing::kBytes; }
  [[nodiscard]] bool has_room(u64 bytes);
  void skip_to_start();

  FrameRing& ring_;
  u64 end_, before_last_ = 0;
  u64 published_ = end_;
  u64 read_ = 0;  // as last seen
};

class FrameRingReader {
 public:
  explicit FrameRingReader(FrameRing& ring);

  // The next frame, a copy that is good until the next call; false: none.
  [[nodiscard]] bool poll(IngressFrame& out);
  [[nodiscard]] bool has_more() const {
    return !is_broken_ && ring_.written_.load(std::memory_order_acquire) != begin_;
  }
  // From now on has_more() is asked again and again.
  void watch() { ring_.watched_.store(1, std::memory_order_relaxed); }
  // No more: has_more() is to be asked once after this.
  void unwatch() { ring_.watched_.exchange(0, std::memory_order_seq_cst); }

 private:
  [[nodiscard]] bool next(RingFrame& out);

  FrameRing& ring_;
  u64 begin_;
  bool is_broken_ = false;
  std::unique_ptr<u8[]> copy_;
};

}  // namespace verbena::host
