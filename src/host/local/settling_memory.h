// SettlingMemory: registered memory that something costly is to be done with: at once where it is
// new to us, as it is not in use yet. Where some of it has been registered before, it is to stay
// registered for a while first: libraries register buffers of one call as well (the temporary one
// of an allreduce), and what huge pages take would not come back. Pure logic; not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace verbena::host {

class SettlingMemory {
 public:
  static constexpr Duration kSettled = ms(100);
  static constexpr std::size_t kMaxWaiting = 256;  // more is not taken up
  static constexpr std::size_t kMaxTaken = 256;    // what was taken before is new again

  // `now` never goes back.
  void add(std::span<const u8> memory, Time now);
  // Returns memory that is due.
  [[nodiscard]] std::optional<std::span<const u8>> take(Time now);
  // Returns when memory will be due; never() if none waits.
  [[nodiscard]] Time next() const;

 private:
  struct Waiting {
    std::span<const u8> memory;
    Time until;
  };
  std::vector<Waiting> waiting_;  // by time
  std::vector<std::span<const u8>> taken_;
};

}  // namespace verbena::host
