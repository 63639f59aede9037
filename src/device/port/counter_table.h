// The counters of a port by name, as Linux shows them of a card in
// /sys/class/infiniband/*/ports/*/counters and hw_counters: those of IBTA Vol 1, 16.1.3.5
// (PortCounters) and of Linux's Documentation/ABI/stable/sysfs-class-infiniband; behind them, in
// hw_counters too, those of our own.
#pragma once

#include <span>
#include <string_view>

#include "device/port/counters.h"

namespace verbena {

enum class CounterFolder : u8 { kCounters, kHWCounters };

constexpr std::string_view name_of(CounterFolder folder) {
  return folder == CounterFolder::kCounters ? "counters" : "hw_counters";
}

struct NamedCounter {
  std::string_view name;
  CounterFolder folder = CounterFolder::kCounters;
  std::string_view meaning;  // a line
  u64 (*value)(const Counters&) = nullptr;
};

// Those of the transports, which each QP has too; all are in hw_counters.
struct NamedEngineCounter {
  std::string_view name;
  std::string_view meaning;
  u64 EngineCounters::*member = nullptr;
};

// No name is there twice, in both together.
[[nodiscard]] std::span<const NamedCounter> counter_table();  // without the transports'
[[nodiscard]] std::span<const NamedEngineCounter> engine_counter_table();

// visit(name, folder, meaning, value) for each of both.
template <typename Visit>
void for_each_counter(const Counters& counters, Visit&& visit) {
  for (const NamedCounter& counter : counter_table())
    visit(counter.name, counter.folder, counter.meaning, counter.value(counters));
  for (const NamedEngineCounter& counter : engine_counter_table())
    visit(counter.name, CounterFolder::kHWCounters, counter.meaning,
          counters.transport.*counter.member);
}

}  // namespace verbena
