#include "host/local/settling_memory.h"

#include <algorithm>

namespace verbena::host {
namespace {

bool overlap(std::span<const u8> a, std::span<const u8> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

void SettlingMemory::add(std::span<const u8> memory, Time now) {
  const bool waited = std::erase_if(waiting_, [memory](const Waiting& known) {
                        return overlap(known.memory, memory);
                      }) != 0;
  const bool is_known = waited || std::ranges::any_of(taken_, [memory](const auto& known) {
                          return overlap(known, memory);
                        });
  if (waiting_.size() >= kMaxWaiting) return;
  const Waiting next{memory, is_known ? now + kSettled : now};
  waiting_.insert(std::ranges::upper_bound(waiting_, next.until, {}, &Waiting::until), next);
}

std::optional<std::span<const u8>> SettlingMemory::take(Time now) {
  if (now < next()) return std::nullopt;
  const std::span<const u8> memory = waiting_.front().memory;
  waiting_.erase(waiting_.begin());
  std::erase_if(taken_, [memory](const auto& known) { return overlap(known, memory); });
  if (taken_.size() == kMaxTaken) taken_.erase(taken_.begin());
  taken_.push_back(memory);
  return memory;
}

Time SettlingMemory::next() const {
  return waiting_.empty() ? Time::never() : waiting_.front().until;
}

}  // namespace verbena::host
