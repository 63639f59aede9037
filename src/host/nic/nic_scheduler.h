// NICScheduler: which function of a NIC sends next, and how much. Guaranteed rates go first, then
// the highest priority that could send; functions of one priority share by weight (deficit round
// robin, Shreedhar and Varghese, SIGCOMM 1995).
//
// A Function has:
//   has_more()          whether any of its programs has something to send
//   may_send(now)       whether its rates allow any of it
//   is_guaranteed(now)  whether it has sent less than its guaranteed rate
//   config()            a NICFunctionConfig: priority and weight
//   deficit             i64, 0 at first: the scheduler's own
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "host/nic/nic_config.h"
#include "host/nic/token_bucket.h"

namespace verbena::host {

template <typename Function>
class NICScheduler {
 public:
  // The heaviest function may send so much in one turn, which is what a link sends in one call. No
  // turn exceeds it, whatever the weights: the next round may be a higher priority's.
  static constexpr u64 kQuantumBytes = 60 << 10;
  static constexpr u64 kBurstBytes = 1 << 20;  // of all functions together

  // `bps`: of all functions together; 0: no limit.
  explicit NICScheduler(u64 bps) : rate_(bps, kBurstBytes) {}

  // Gives functions their turns: send(function, bytes) sends up to so many and returns how many.
  // Returns true if any was sent.
  template <typename Send>
  bool serve(std::span<Function> functions, Time now, Send&& send) {
    if (!has_work(functions)) return false;
    bool any = serve_round(functions, now, Round::kGuaranteed, send);
    for (u32 priority = kMaxNICPriority + 1; priority-- > 0;) {
      const auto round = static_cast<Round>(priority);
      any = serve_round(functions, now, round, send) || any;
      if (is_pending(functions, now, round)) break;
    }
    return any;
  }
  [[nodiscard]] const TokenBucket& rate() const { return rate_; }

 private:
  // The functions that a round serves: those below their guaranteed rate, or those of a priority.
  enum class Round : u32 { kOfFirstPriority = 0, kGuaranteed = kMaxNICPriority + 1 };
  static constexpr std::size_t kRounds = kMaxNICPriority + 2;

  // Returns false if no function has anything to send. Then none keeps a share.
  [[nodiscard]] static bool has_work(std::span<Function> functions) {
    if (std::ranges::any_of(functions, [](Function& function) { return function.has_more(); }))
      return true;
    for (Function& function : functions) function.deficit = 0;
    return false;
  }
  [[nodiscard]] static bool is_served(Function& function, Time now, Round round) {
    return round == Round::kGuaranteed ? function.is_guaranteed(now)
                                       : function.config().priority == static_cast<u32>(round);
  }
  // The largest weight of those that have something to send; 1 if none has.
  [[nodiscard]] static u32 heaviest(std::span<Function> functions, Time now, Round round) {
    u32 most = 1;
    for (Function& function : functions)
      if (is_served(function, now, round) && function.has_more())
        most = std::max(most, function.config().weight);
    return most;
  }
  // Whether a function of the round could send more at once.
  [[nodiscard]] static bool is_pending(std::span<Function> functions, Time now, Round round) {
    return std::ranges::any_of(functions, [&](Function& function) {
      return is_served(function, now, round) && function.may_send(now);
    });
  }

  template <typename Send>
  bool serve_round(std::span<Function> functions, Time now, Round round, Send& send) {
    const u32 most = heaviest(functions, now, round);
    std::size_t& turn = turns_[static_cast<std::size_t>(round)];
    bool any = false;
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (!rate_.may_send(now)) break;  // the next round begins with the one whose turn it is
      Function& function = functions[turn % functions.size()];
      turn = (turn + 1) % functions.size();
      if (!is_served(function, now, round)) continue;
      const u64 sent = take_turn(function, most, send);
      rate_.on_sent(sent);
      any = any || sent != 0;
    }
    return any;
  }
  template <typename Send>
  [[nodiscard]] static u64 take_turn(Function& function, u32 most, Send& send) {
    if (!function.has_more()) {
      function.deficit = 0;
      return 0;
    }
    function.deficit += static_cast<i64>(kQuantumBytes * function.config().weight / most);
    if (function.deficit <= 0) return 0;
    const u64 sent = send(function, static_cast<u64>(function.deficit));
    // A share that its rates or rings have left unused does not add to the next one.
    function.deficit = std::min<i64>(function.deficit - static_cast<i64>(sent), 0);
    return sent;
  }

  TokenBucket rate_;
  std::array<std::size_t, kRounds> turns_{};  // whose turn it is, of each round
};

}  // namespace verbena::host
