// Windows: the division of time that lets each node be simulated by itself for a while. The actions
// of a node reach no other node sooner than the shortest link takes, which is `notice`.
//   kEach       All nodes go on by one notice, one after another: window n is [n, n+1) notices.
//   kAlternate  Where links join two sides, and all hosts are on one, as in fat trees, a side goes
//               on by two notices while the other waits halfway: window n is [n-1, n+1), of side
//               n % 2. So a node is fetched into the cache half as often, and does twice as much.
// Frames behave the same in both. But the number of a QP, and its first turn, depend on when the QP
// is made: where flows start one after another, kEach is used (Network::run()).
#pragma once

#include <vector>

#include "base/time.h"
#include "fabric/topology.h"

namespace verbena::fabric {

// Returns the side of each node, 0 or 1: hosts have 0, and neighbours differ. Empty if there is no
// such division.
[[nodiscard]] std::vector<u8> sides_of(const Topology& topology);

class Windows {
 public:
  enum class Order : u8 { kEach, kAlternate };

  // `notice` > 0. `side_of_place`: of each port's node; it outlives this.
  explicit Windows(Duration notice)
      : notice_(static_cast<u64>(notice.ps())), reciprocal_(~u64{0} / notice_) {}
  Windows(Duration notice, const std::vector<u8>& side_of_place) : Windows(notice) {
    side_of_place_ = &side_of_place;
  }

  [[nodiscard]] Order order() const {
    return side_of_place_ == nullptr ? Order::kEach : Order::kAlternate;
  }
  [[nodiscard]] Duration length() const {
    return ps(static_cast<i64>(order() == Order::kEach ? notice_ : 2 * notice_));
  }
  [[nodiscard]] u32 side_of(u32 place) const {
    return side_of_place_ == nullptr ? 0 : (*side_of_place_)[place];
  }
  // Returns the window in which a node of the side is at that time.
  [[nodiscard]] u64 window_of(Time at, u32 side) const {
    const u64 count = notices_in(static_cast<u64>(at.ps()));
    return order() == Order::kEach ? count : count + ((count ^ side) & 1);
  }
  // The same for what comes so long after the start of a window of that side, or of the other.
  enum class Side : u8 { kOwn, kOther };
  [[nodiscard]] u64 window_after(u64 window, Duration since_start, Side side) const {
    const u64 notices = notices_in(static_cast<u64>(since_start.ps()));
    if (order() == Order::kEach) return window + notices;
    return window + (side == Side::kOther ? (notices - 1) | 1 : notices & ~u64{1});
  }
  [[nodiscard]] Time start_of(u64 window) const {
    const u64 end_of_first = order() == Order::kEach ? 0 : notice_;
    return Time::from_ps(static_cast<i64>(window * notice_) - static_cast<i64>(end_of_first));
  }

 private:
  // Returns the whole notices in `time`, without a division: a product with the reciprocal is at
  // most one too small for times below 2^63.
  [[nodiscard]] u64 notices_in(u64 time) const {
    const u64 count = static_cast<u64>(static_cast<unsigned __int128>(time) * reciprocal_ >> 64);
    return count + (time - count * notice_ >= notice_ ? 1 : 0);
  }

  u64 notice_;      // in picoseconds
  u64 reciprocal_;  // so often it is in 2^64
  const std::vector<u8>* side_of_place_ = nullptr;
};

}  // namespace verbena::fabric
