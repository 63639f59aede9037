// LocalProgress: how far each RC QP of a device has executed what its peer has sent, for that peer
// to see where both are on one host: sooner than by an acknowledgement, which may be held back for
// a reply. Whoever acts on it needs no more than what an acknowledgement would say; it still waits
// for that before it completes anything. Zeroed memory: nowhere.
#pragma once

#include <array>
#include <atomic>

#include "base/psn.h"
#include "transport/local/published_qps.h"

namespace verbena {

class LocalProgress {
 public:
  // All requests before `expected` (ePSN) are executed. IBTA Vol 1, 9.7.4.1.2
  void note(QPN qpn, PSN expected) {
    place(qpn).store(kKnown | expected.value(), std::memory_order_release);
  }
  // Whether it is there. Then what has been executed is in the QP's memory.
  [[nodiscard]] bool is_at(QPN qpn, PSN expected) const {
    return places_[qpn.value % PublishedQPs::kPlaces].load(std::memory_order_acquire) ==
           (kKnown | expected.value());
  }

 private:
  static constexpr u32 kKnown = 1u << 31;
  std::atomic<u32>& place(QPN qpn) { return places_[qpn.value % PublishedQPs::kPlaces]; }

  std::array<std::atomic<u32>, PublishedQPs::kPlaces> places_;
};

}  // namespace verbena
