// SettlingMemory: registered memory that is to stay for a while before anything costly is done with
// it. Libraries register buffers of one call as well (the temporary one of an allreduce), and what
// huge pages take would not come back. Memory that is registered again meanwhile, all of it or
// some, waits anew. Pure logic; not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace verbena::host {

class SettlingMemory {
 public:
  static constexpr Duration kSettled = ms(100);
  static constexpr std::size_t kMaxWaiting = 256;  // what is too much is forgotten

  // `now` never goes back.
  void add(std::span<const u8> memory, Time now);
  // Some that has settled, the oldest first.
  [[nodiscard]] std::optional<std::span<const u8>> take(Time now);
  // When there will be some; never(): nothing waits.
  [[nodiscard]] Time next() const;

 private:
  struct Waiting {
    std::span<const u8> memory;
    Time until;
  };
  std::vector<Waiting> waiting_;  // oldest first
};

}  // namespace verbena::host
