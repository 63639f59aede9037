// FramePool: the frames of one simulation. A frame that is given back is taken next, while it is
// still in the cache. The pool grows to the most frames that were ever in the network at once.
#pragma once

#include <vector>

#include "base/check.h"
#include "congestion/signals.h"
#include "fabric/frame.h"
#include "fabric/live/live_packet.h"

namespace verbena::fabric {

class FramePool {
 public:
  // Addresses for so many: memory is taken as they are used, and none is moved until there are
  // more.
  void reserve(std::size_t frames) { frames_.reserve(frames); }
  // A frame as the constructor leaves it, `next` cleared; other fields are the taker's to set.
  [[nodiscard]] FrameIndex take() {
    ++in_use_;
    if (free_ == kNoFrame) {
      frames_.emplace_back();
      return static_cast<FrameIndex>(frames_.size() - 1);
    }
    const FrameIndex index = free_;
    free_ = frames_[index].next;
    frames_[index].next = kNoFrame;
    return index;
  }
  [[nodiscard]] FrameIndex copy(FrameIndex index) {
    const FrameIndex copied = take();
    frames_[copied] = frames_[index];
    frames_[copied].next = kNoFrame;
    if (has_paths()) path(copied) = PathTelemetry(path(index));
    if (frames_[copied].type == FrameType::kLive) live(copied) = LivePacket(live(index));
    return copied;
  }
  void give_back(FrameIndex index) {
    CHECK(in_use_ != 0);
    --in_use_;
    frames_[index].next = free_;
    free_ = index;
  }
  Frame& operator[](FrameIndex index) { return frames_[index]; }
  const Frame& operator[](FrameIndex index) const { return frames_[index]; }
  // Returns the telemetry that the frame has collected on its path, where it is collected
  // (telemetry.h).
  [[nodiscard]] PathTelemetry& path(FrameIndex index) {
    if (paths_.size() <= index) paths_.resize(frames_.size());
    return paths_[index];
  }
  [[nodiscard]] bool has_paths() const { return !paths_.empty(); }
  // Returns the packet of a frame of a live process.
  [[nodiscard]] LivePacket& live(FrameIndex index) {
    if (live_.size() <= index) live_.resize(frames_.size());
    return live_[index];
  }
  [[nodiscard]] u64 in_use() const { return in_use_; }
  [[gnu::always_inline]] void prefetch(FrameIndex index) const {
    __builtin_prefetch(&frames_[index]);
  }

 private:
  std::vector<Frame> frames_;
  std::vector<PathTelemetry> paths_;  // by frame; empty where none are collected
  std::vector<LivePacket> live_;      // likewise; empty where no process is live
  FrameIndex free_ = kNoFrame;
  u64 in_use_ = 0;
};

}  // namespace verbena::fabric
