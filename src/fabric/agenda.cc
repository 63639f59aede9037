#include "fabric/agenda.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr std::size_t kFew = 32;     // sorted by insertion alone
constexpr std::size_t kMany = 2048;  // worth large tables

// By kBits of the times from `shift` on; stable.
template <typename Entry, u32 kBits>
void distribute(const std::vector<Entry>& from, std::vector<Entry>& to, u32 shift) {
  std::array<u32, 1u << kBits> place{};
  constexpr u32 kMask = (1u << kBits) - 1;
  for (const Entry& entry : from) ++place[entry.since_start >> shift & kMask];
  u32 sum = 0;
  for (u32& count : place) {
    const u32 here = count;
    count = sum;
    sum += here;
  }
  to.resize(from.size());
  for (const Entry& entry : from) to[place[entry.since_start >> shift & kMask]++] = entry;
}

}  // namespace

void Agenda::begin(Time start, std::span<const Event> events) {
  events_ = events;
  next_ = 0;
  last_ = start;
  sorted_.resize(events.size());
  u32 all_bits = 0;
  for (u32 i = 0; i < events.size(); ++i) {
    sorted_[i] = {static_cast<u32>((events[i].at - start).ps()), i};
    all_bits |= sorted_[i].since_start;
  }
  times_bits_ = static_cast<u32>(std::bit_width(all_bits));
  sort();
}

void Agenda::insert(Time at, u32 what, u32 subject, u64 rank) {
  if (next_added_ == added_.size()) {
    added_.clear();
    next_added_ = 0;
  }
  Event event;
  event.at = std::max(at, last_);
  event.what = what;
  event.subject = subject;
  event.rank = rank;
  added_.emplace_back();
  std::size_t to = added_.size() - 1;
  for (; to > next_added_ && comes_before(event, added_[to - 1]); --to) added_[to] = added_[to - 1];
  added_[to] = event;
}

void Agenda::sort() {
  if (sorted_.size() < kMany)
    sort_few();
  else
    sort_many();
  sort_equal_times();
}

// By the highest digit, if they are worth it; then hardly any is far from its place.
void Agenda::sort_few() {
  constexpr u32 kDigit = 8;
  if (sorted_.size() > kFew) {
    distribute<Entry, kDigit>(sorted_, spare_, times_bits_ > kDigit ? times_bits_ - kDigit : 0);
    sorted_.swap(spare_);
  }
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    const Entry entry = sorted_[i];
    std::size_t to = i;
    for (; to > 0 && entry.since_start < sorted_[to - 1].since_start; --to)
      sorted_[to] = sorted_[to - 1];
    sorted_[to] = entry;
  }
}

void Agenda::sort_many() {
  constexpr u32 kDigit = 11;
  static_assert(2 * kDigit >= kMaxWindowBits);
  distribute<Entry, kDigit>(sorted_, spare_, 0);
  distribute<Entry, kDigit>(spare_, sorted_, kDigit);
}

void Agenda::sort_equal_times() {
  const auto before = [this](const Entry& a, const Entry& b) {
    if (comes_before(events_[a.index], events_[b.index])) return true;
    return a.index < b.index && !comes_before(events_[b.index], events_[a.index]);
  };
  const auto at = [this](std::size_t i) {
    return sorted_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  for (std::size_t i = 0; i < sorted_.size();) {
    std::size_t end = i + 1;
    while (end < sorted_.size() && sorted_[end].since_start == sorted_[i].since_start) ++end;
    if (end - i > 1) std::sort(at(i), at(end), before);
    i = end;
  }
}

}  // namespace verbena::fabric
