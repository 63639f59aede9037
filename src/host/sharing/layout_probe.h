// LayoutProbe: finds out which slot has which socket of the kernel's group, by asking: one probe
// for each index, each answered by the process that got it. An index beyond the group's end is
// delivered to any member, so a slot's true index is the lowest it answers for. Pure bookkeeping:
// no socket, no clock.
#pragma once

#include <vector>

#include "host/sharing/process_channel.h"
#include "host/sharing/steering_program.h"

namespace verbena::host {

class LayoutProbe {
 public:
  LayoutProbe() = default;
  // Probes 0 .. count-1; count is at least the number of sockets.
  LayoutProbe(u64 nonce, u32 count) : nonce_(nonce), answered_(count, false) {}

  [[nodiscard]] u64 nonce() const { return nonce_; }
  [[nodiscard]] std::vector<u32> unanswered() const;
  void on_answer(const ProbeAnswer& answer);  // others' and late answers are ignored
  [[nodiscard]] bool is_complete() const { return left() == 0; }
  // Returns the part of the layout that is known so far.
  [[nodiscard]] const std::vector<Steer>& layout() const { return layout_; }

 private:
  [[nodiscard]] std::size_t left() const { return answered_.size() - answers_; }

  u64 nonce_ = 0;
  std::vector<bool> answered_;
  std::size_t answers_ = 0;
  std::vector<Steer> layout_;
};

}  // namespace verbena::host
