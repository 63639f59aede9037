#include "jobs/steps/gpu.h"

#include <array>

namespace verbena::jobs {
namespace {

constexpr std::array kGPUs = {
    GPU{},
    GPU{.name = "a100",
        .source = "NVIDIA A100 80GB SXM data sheet",
        .flops = 312e12,
        .memory_bytes = 2.039e12},
    GPU{.name = "h200", .source = "NVIDIA H200 SXM data sheet", .memory_bytes = 4.8e12},
    GPU{.name = "b200",
        .source = "NVIDIA DGX B200 data sheet, an eighth of it",
        .flops = 2250e12,
        .memory_bytes = 8e12},
};

}  // namespace

std::span<const GPU> gpus() { return kGPUs; }

const GPU* gpu_named(std::string_view name) {
  for (const GPU& known : kGPUs)
    if (known.name == name) return &known;
  return nullptr;
}

}  // namespace verbena::jobs
