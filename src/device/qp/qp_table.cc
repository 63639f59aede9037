#include "device/qp/qp_table.h"

namespace verbena {

QPTable::QPTable(QPN first, u32 limit, std::optional<u64> seed) : first_(first), limit_(limit) {
  if (seed) draw_.emplace(*seed);
  // 0 and 1 are the management QPs, 0xffffff is multicast. IBTA 3.5.1, 9.4.1
  CHECK(first.value > kGSIQPN.value && u64{first.value} + limit <= kMulticastQPN.value);
}

std::optional<QPN> QPTable::next_number() {
  if (size_ == limit_) return std::nullopt;
  if (draw_) next_ = static_cast<u32>(draw_->below(limit_));
  while (next_ < slots_.size() && slots_[next_] != nullptr) next_ = (next_ + 1) % limit_;
  return QPN(first_.value + next_);
}

QueuePair* QPTable::insert(std::unique_ptr<QueuePair> qp) {
  CHECK(qp->attributes.qpn == QPN(first_.value + next_) && next_ < limit_);
  if (next_ >= slots_.size()) slots_.resize(next_ + 1);
  CHECK(slots_[next_] == nullptr);
  slots_[next_] = std::move(qp);
  ++size_;
  QueuePair* const inserted = slots_[next_].get();
  next_ = (next_ + 1) % limit_;
  return inserted;
}

void QPTable::erase(QueuePair* qp) {
  CHECK(qp != nullptr && find(qp->attributes.qpn) == qp);
  slots_[qp->attributes.qpn.value - first_.value].reset();
  --size_;
}

}  // namespace verbena
