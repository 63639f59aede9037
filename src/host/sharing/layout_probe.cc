#include "host/sharing/layout_probe.h"

#include <algorithm>

namespace verbena::host {

std::vector<u32> LayoutProbe::unanswered() const {
  std::vector<u32> indexes;
  for (u32 i = 0; i < answered_.size(); ++i)
    if (!answered_[i]) indexes.push_back(i);
  return indexes;
}

void LayoutProbe::on_answer(const ProbeAnswer& answer) {
  if (answer.nonce != nonce_ || answer.index >= answered_.size() || answered_[answer.index]) return;
  answered_[answer.index] = true;
  ++answers_;
  const auto known = std::ranges::find(layout_, answer.slot, &Steer::slot);
  if (known == layout_.end())
    layout_.push_back({.slot = answer.slot, .index = answer.index});
  else
    known->index = std::min(known->index, answer.index);
}

}  // namespace verbena::host
