// GPU: how fast a GPU computes, in two numbers: dense operations of 16 bits, and memory. What a
// model reaches of the first is `efficiency`; 0.4 to 0.5 is what Megatron-LM and Llama 3 report as
// model FLOPs utilization when nothing waits.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "base/time.h"

namespace verbena::jobs {

struct GPU {
  std::string_view name = "h100";
  std::string_view source = "NVIDIA H100 SXM5 data sheet";
  double flops = 989e12;          // a second, dense, BF16
  double memory_bytes = 3.35e12;  // a second
  double efficiency = 0.5;        // of flops

  // Returns the time of the work's operations or of the bytes that it reads, whichever is longer.
  [[nodiscard]] double seconds_of(double operations, double bytes) const {
    return std::max(operations / (flops * efficiency), bytes / memory_bytes);
  }
  [[nodiscard]] Duration time_of(double operations, double bytes) const {
    return ps(static_cast<i64>(seconds_of(operations, bytes) * 1e12));
  }
};

[[nodiscard]] std::span<const GPU> gpus();
// Returns nullptr if no GPU has that name.
[[nodiscard]] const GPU* gpu_named(std::string_view name);

}  // namespace verbena::jobs
