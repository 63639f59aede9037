// RefusalLimit: sources whose requests were refused too often are not heard for a while, twice as
// long each time. So a scan of QPNs or of R_Keys gets no faster than the back-off. A refusal: a
// packet for a QP that does not exist, from a source that is not the QP's peer, or with an R_Key
// that gives no access. Bounded: of too many sources those that were refused least recently are
// forgotten.
#pragma once

#include <algorithm>
#include <array>

#include "base/time.h"
#include "wire/ib/gid.h"

namespace verbena {

class RefusalLimit {
 public:
  static constexpr std::size_t kSources = 64;
  static constexpr Duration kFirstPause = ms(10), kMaxPause = sec(10);

  // `per_second` 0: nothing is ever limited.
  explicit RefusalLimit(u32 per_second) : per_second_(per_second) {}

  [[nodiscard]] bool is_on() const { return per_second_ != 0; }
  // Whether what comes from the source is to be dropped unseen.
  [[nodiscard]] bool is_silenced(const GID& source, Time now) const {
    if (!any_silenced_) return false;
    const auto found = std::ranges::find(sources_, source, &Source::address);
    return found != sources_.end() && now < found->silent_until;
  }
  void on_refused(const GID& source, Time now) {
    if (!is_on()) return;
    Source& known = find_or_replace(source);
    if (now - known.window_began >= sec(1)) {
      if (known.refusals <= per_second_) known.pause = kFirstPause;  // it has behaved
      known.window_began = now;
      known.refusals = 0;
    }
    known.last = now;
    if (++known.refusals <= per_second_) return;
    known.silent_until = now + known.pause;
    known.pause = std::min(known.pause * 2, kMaxPause);
    any_silenced_ = true;
  }

 private:
  struct Source {
    GID address{};
    Time window_began{}, silent_until{}, last{};
    u32 refusals = 0;
    Duration pause = kFirstPause;
  };
  Source& find_or_replace(const GID& source) {
    const auto found = std::ranges::find(sources_, source, &Source::address);
    if (found != sources_.end()) return *found;
    Source& oldest = *std::ranges::min_element(sources_, {}, &Source::last);
    return oldest = Source{.address = source};
  }

  u32 per_second_;
  bool any_silenced_ = false;
  std::array<Source, kSources> sources_{};
};

}  // namespace verbena
