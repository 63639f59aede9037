#include "host/local/settling_memory.h"

namespace verbena::host {
namespace {

bool overlap(std::span<const u8> a, std::span<const u8> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

void SettlingMemory::add(std::span<const u8> memory, Time now) {
  std::erase_if(waiting_, [memory](const Waiting& known) { return overlap(known.memory, memory); });
  if (waiting_.size() < kMaxWaiting) waiting_.push_back({memory, now + kSettled});
}

std::optional<std::span<const u8>> SettlingMemory::take(Time now) {
  if (now < next()) return std::nullopt;
  const std::span<const u8> memory = waiting_.front().memory;
  waiting_.erase(waiting_.begin());
  return memory;
}

Time SettlingMemory::next() const {
  return waiting_.empty() ? Time::never() : waiting_.front().until;
}

}  // namespace verbena::host
