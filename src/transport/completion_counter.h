// CompletionCounter: the number of completed work requests of the QPs to which it is attached,
// signaled or not: successes, and errors. ibv_create_comp_cntr(3). It counts up while the
// application reads and changes it in other threads.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "transport/cqe.h"
#include "transport/work_request.h"

namespace verbena {

struct CompletionCounter {
  enum class Unit : u8 { kRequests, kBytes };  // of `done`; errors are counted one by one

  void on_completion(bool good, u64 bytes) {
    if (good)
      done.fetch_add(unit == Unit::kBytes ? bytes : 1, std::memory_order_relaxed);
    else
      failed.fetch_add(1, std::memory_order_relaxed);
  }

  Unit unit = Unit::kRequests;
  std::atomic<u64> done{0}, failed{0};  // wrap around
};

// The operations for which a counter may be attached, at most one counter for each.
enum class CountedOp : u8 { kSend, kReceive, kRDMARead, kRDMAWrite };
inline constexpr std::size_t kCountedOps = 4;

class CompletionCounters {
 public:
  [[nodiscard]] CompletionCounter*& of(CountedOp op) { return counters_[static_cast<u8>(op)]; }
  void on_completion(CountedOp op, bool good, u64 bytes) const {
    CompletionCounter* const counter = counters_[static_cast<u8>(op)];
    if (counter != nullptr) counter->on_completion(good, bytes);
  }

 private:
  std::array<CompletionCounter*, kCountedOps> counters_{};
};

// Returns nullopt if the operation is not counted.
constexpr std::optional<CountedOp> counted_as(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate: return CountedOp::kSend;
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate: return CountedOp::kRDMAWrite;
    case SendOp::kRDMARead: return CountedOp::kRDMARead;
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace verbena
