// LocalProgress: how far each RC QP of a device has executed its peer's requests, published for a
// peer on the same host. The peer learns it sooner than by an acknowledgement, which may be held
// for a reply. The information equals that of an acknowledgement; the peer still waits for that
// before it completes anything. In zeroed memory no QP has progress.
#pragma once

#include <array>
#include <atomic>

#include "base/psn.h"
#include "transport/local/published_qps.h"

namespace verbena {

class LocalProgress {
 public:
  // All requests before `expected` (ePSN) are executed, copies to far memory included: while one
  // runs, nothing is noted, and the peer waits for the acknowledgement. IBTA Vol 1, 9.7.4.1.2
  void note(QPN qpn, PSN expected) {
    place(qpn).store(kKnown | expected.value(), std::memory_order_release);
  }
  // Returns whether the QP has executed all requests before `expected`. Their data is then in its
  // memory.
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
