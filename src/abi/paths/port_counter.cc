#include "abi/paths/port_counter.h"

#include <unistd.h>

namespace verbena::abi::paths {
namespace {

// Takes the last component off.
std::string_view take_last(std::string_view& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string_view last = path;
  last.remove_prefix(slash + 1);
  path.remove_suffix(path.size() - slash);
  return last;
}

}  // namespace

std::optional<PortCounter> PortCounter::of(std::string_view real_path) {
  std::string_view rest = real_path;
  const std::string_view name = take_last(rest), folder = take_last(rest);
  const std::string_view port = rest;
  if (take_last(rest).empty() || take_last(rest) != "ports") return std::nullopt;
  const std::string_view device = take_last(rest);
  PortCounter counter;
  for (const NamedCounter& known : counter_table())
    if (known.name == name && name_of(known.folder) == folder) counter.counter_ = &known;
  for (const NamedEngineCounter& known : engine_counter_table())
    if (known.name == name && name_of(CounterFolder::kHWCounters) == folder)
      counter.engine_counter_ = &known;
  if (counter.counter_ == nullptr && counter.engine_counter_ == nullptr) return std::nullopt;
  const std::optional<DeviceIdentity> identity = DeviceIdentity::of(device, port);
  if (!identity) return std::nullopt;
  counter.device_ = *identity;
  return counter;
}

u64 PortCounter::value() const {
  RunningPrograms programs(RunningPrograms::kPatienceForCounterMs);
  programs.ask_all(host::StatsSubject::kQPs, RunningPrograms::kNoQPs);
  alignas(u64) std::array<u8, RunningPrograms::kLeastBuffer> buffer;
  u64 own = 0, all = 0;
  bool has_own = false;
  while (!has_own) {
    const auto answer = programs.next(buffer);
    if (!answer) break;
    if (!device_.is_of(*answer->adapter)) continue;
    const u64 value = value_in(answer->adapter->counters);
    all += value;
    if (answer->pid != ::getpid()) continue;
    own += value;
    has_own = true;
  }
  return has_own ? own : all;
}

u64 PortCounter::value_in(const Counters& counters) const {
  return counter_ != nullptr ? counter_->value(counters)
                             : counters.transport.*(engine_counter_->member);
}

}  // namespace verbena::abi::paths
