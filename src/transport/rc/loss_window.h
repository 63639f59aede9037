// LossWindow: how many packets may be in flight. It halves at a loss and grows with
// acknowledgements: additive increase, multiplicative decrease (Chiu and Jain, 1989). It starts
// fully open: on a lossless path it never changes.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace verbena {

class LossWindow {
 public:
  static constexpr u32 kFloor = 8;  // packets

  explicit LossWindow(u32 limit) : limit_(std::max(limit, 1u)), packets_(limit_) {}
  u32 packets() const { return packets_; }
  bool is_open() const { return packets_ == limit_; }
  void on_acknowledged(u32 packets) {
    if (packets_ == limit_) return;
    credit_ += packets;
    const u32 step = credit_ / kGrowth;
    credit_ -= step * kGrowth;
    packets_ = std::min(limit_, packets_ + step);
  }
  void on_loss() { packets_ = std::min(limit_, std::max(kFloor, packets_ / 2)); }

 private:
  static constexpr u32 kGrowth = 8;  // acknowledged packets for one more packet in flight
  u32 limit_;
  u32 packets_;
  u32 credit_ = 0;
};

}  // namespace verbena
