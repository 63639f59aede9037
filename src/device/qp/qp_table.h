// QPTable: owns the QPs and finds them by number: an array lookup, for it is done for each packet.
// Numbers are given out in a circle, so that one comes back as late as possible: a packet of a
// destroyed QP still in flight must not meet its successor.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "device/qp/queue_pair.h"

namespace verbena {

class QPTable {
 public:
  // With `seed`, each number is drawn from the free ones, so that a peer cannot guess the next.
  QPTable(QPN first, u32 limit, std::optional<u64> seed = std::nullopt);

  // Returns the number that the next QP will have, or nullopt if the table is full.
  [[nodiscard]] std::optional<QPN> next_number();
  QueuePair* insert(std::unique_ptr<QueuePair> qp);  // numbered by next_number()
  void erase(QueuePair* qp);

  [[nodiscard]] QueuePair* find(QPN qpn) const {      // nullptr if there is none
    const u64 index = u64{qpn.value} - first_.value;  // below first_: beyond any size
    return index < slots_.size() ? slots_[index].get() : nullptr;
  }
  void prefetch(QPN qpn) const {  // what find() looks at
    const u64 index = u64{qpn.value} - first_.value;
    if (index < slots_.size()) __builtin_prefetch(slots_.data() + index);
  }
  // Returns the one with the least number that is not below `from`, or nullptr.
  [[nodiscard]] QueuePair* find_from(QPN from) const {
    const u64 first = from.value > first_.value ? from.value - first_.value : 0;
    for (u64 index = first; index < slots_.size(); ++index)
      if (slots_[index] != nullptr) return slots_[index].get();
    return nullptr;
  }
  [[nodiscard]] u32 size() const { return size_; }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const std::unique_ptr<QueuePair>& qp : slots_)
      if (qp != nullptr) visit(*qp);
  }

 private:
  QPN first_;
  u32 limit_;
  u32 next_ = 0;  // where the search for a free number starts
  u32 size_ = 0;
  std::optional<PRNG> draw_;                       // nullopt if the numbers go in a circle
  std::vector<std::unique_ptr<QueuePair>> slots_;  // grows up to limit_
};

}  // namespace verbena
