#include "fabric/agenda.h"

#include <array>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr std::size_t kFew = 32;     // sorted by insertion
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
  for (u32 i = 0; i < events.size(); ++i)
    sorted_[i] = {static_cast<u32>((events[i].at - start).ps()), i};
  sort();
}

void Agenda::add(Event event) {
  event.at = std::max(event.at, last_);
  added_.push_back({event, adds_++});
  std::ranges::push_heap(added_, comes_after);
}

void Agenda::sort() {
  if (sorted_.size() > kFew) {
    sort_by_time();
  } else {
    for (std::size_t i = 1; i < sorted_.size(); ++i) {
      const Entry entry = sorted_[i];
      std::size_t to = i;
      for (; to > 0 && entry.since_start < sorted_[to - 1].since_start; --to)
        sorted_[to] = sorted_[to - 1];
      sorted_[to] = entry;
    }
  }
  sort_equal_times();
}

void Agenda::sort_by_time() {
  constexpr u32 kSmall = 7, kLarge = 11;
  static_assert(3 * kSmall >= kMaxWindowBits && 2 * kLarge >= kMaxWindowBits);
  if (sorted_.size() < kMany) {
    distribute<Entry, kSmall>(sorted_, spare_, 0);
    distribute<Entry, kSmall>(spare_, sorted_, kSmall);
    distribute<Entry, kSmall>(sorted_, spare_, 2 * kSmall);
    return sorted_.swap(spare_);
  }
  distribute<Entry, kLarge>(sorted_, spare_, 0);
  distribute<Entry, kLarge>(spare_, sorted_, kLarge);
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
