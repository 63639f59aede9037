#include "fabric/agenda.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr std::size_t kFew = 32;     // sorted by insertion alone
constexpr std::size_t kMany = 2048;  // worth large tables

// By kBits of the times from `shift` on; stable. entry_at(i): of `count`.
template <u32 kBits, typename Entry, typename EntryAt>
void distribute(u32 count, const EntryAt& entry_at, std::vector<Entry>& to, u32 shift) {
  std::array<u32, 1u << kBits> place{};
  constexpr u32 kMask = (1u << kBits) - 1;
  for (u32 i = 0; i < count; ++i) ++place[entry_at(i).since_start >> shift & kMask];
  u32 sum = 0;
  for (u32& next : place) {
    const u32 here = next;
    next = sum;
    sum += here;
  }
  for (u32 i = 0; i < count; ++i) {
    const Entry entry = entry_at(i);
    to[place[entry.since_start >> shift & kMask]++] = entry;
  }
}

}  // namespace

void Agenda::begin(Time start, Duration length, std::span<const Event> events) {
  events_ = events;
  start_ = last_ = start;
  next_ = 0;
  if (events.size() > sorted_.size()) sorted_.resize(events.size());
  if (events.size() < kMany)
    sort_few(static_cast<u32>(std::bit_width(static_cast<u64>(length.ps()))));
  else
    sort_many();
}

void Agenda::insert(Time at, u32 what, u32 subject, u64 rank) {
  if (next_added_ == end_of_added_) next_added_ = end_of_added_ = 0;
  Event event;
  event.at = std::max(at, last_);
  event.what = what;
  event.subject = subject;
  event.rank = rank;
  if (end_of_added_ == added_.size()) [[unlikely]]
    added_.emplace_back();
  std::size_t to = end_of_added_++;
  for (; to > next_added_ && comes_before(event, added_[to - 1]); --to) added_[to] = added_[to - 1];
  added_[to] = event;
}

// By the highest digit, if they are worth it; then hardly any is far from its place.
void Agenda::sort_few(u32 bits_of_times) {
  constexpr u32 kDigit = 8;
  const u32 count = static_cast<u32>(events_.size());
  if (count > kFew)
    distribute<kDigit>(
        count, [this](u32 i) { return entry_of(i); }, sorted_,
        bits_of_times > kDigit ? bits_of_times - kDigit : 0);
  else
    for (u32 i = 0; i < count; ++i) sorted_[i] = entry_of(i);
  if (insert_each()) sort_equal_times();
}

// Each into its place among those before it. Whether any have the same time.
bool Agenda::insert_each() {
  bool any_equal = false;
  for (std::size_t i = 1; i < events_.size(); ++i) {
    const Entry entry = sorted_[i];
    std::size_t to = i;
    for (; to > 0 && entry.since_start < sorted_[to - 1].since_start; --to)
      sorted_[to] = sorted_[to - 1];
    any_equal |= to > 0 && entry.since_start == sorted_[to - 1].since_start;
    if (to != i) sorted_[to] = entry;
  }
  return any_equal;
}

void Agenda::sort_many() {
  constexpr u32 kDigit = 11;
  static_assert(2 * kDigit >= kMaxWindowBits);
  const u32 count = static_cast<u32>(events_.size());
  spare_.resize(count);
  distribute<kDigit>(
      count, [this](u32 i) { return entry_of(i); }, spare_, 0);
  distribute<kDigit>(
      count, [this](u32 i) { return spare_[i]; }, sorted_, kDigit);
  sort_equal_times();
}

void Agenda::sort_equal_times() {
  const auto before = [this](const Entry& a, const Entry& b) {
    if (comes_before(events_[a.index], events_[b.index])) return true;
    return a.index < b.index && !comes_before(events_[b.index], events_[a.index]);
  };
  const auto at = [this](std::size_t i) {
    return sorted_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  for (std::size_t i = 1; i < events_.size(); ++i) {
    if (sorted_[i].since_start != sorted_[i - 1].since_start) continue;
    const std::size_t begin = i - 1;
    while (i < events_.size() && sorted_[i].since_start == sorted_[begin].since_start) ++i;
    std::sort(at(begin), at(i), before);
  }
}

}  // namespace verbena::fabric
