// Huge pages behind memory that peers copy to and from: process_vm_writev(2) looks up and pins page
// by page, so that it goes twice as fast into pages of 2 MiB (docs/performance.md).
// VERBENA_HUGE=off leaves memory alone.
#pragma once

#include <span>

#include "base/types.h"

namespace verbena::host {

inline constexpr u64 kHugePage = 2u << 20;

// HugePages: the part of `memory` to make huge: at most 128 aligned huge pages, at least half of
// each of which belongs to `memory`. `count` is 0 if there is none.
struct HugePages {
  u64 begin = 0, count = 0;
};
[[nodiscard]] HugePages huge_pages_of(std::span<const u8> memory);

// Copies memory that lies in small pages into huge ones, in place: MADV_COLLAPSE, Linux 6.1. What
// the kernel cannot make huge stays as it is. Takes from 0.4 ms for each to 30 ms, where other
// programs want the cores.
void give_huge_pages(std::span<const u8> memory);
// The same, in a thread of its own, once it is clear that the memory stays (settling_memory.h); the
// thread ends when nothing is left to do. Memory that is gone by then does no harm. Thread-safe.
void give_huge_pages_soon(std::span<const u8> memory);

}  // namespace verbena::host
