#include "jobs/program/task.h"

#include "base/check.h"

namespace verbena::jobs {

std::string_view name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::kForward: return "forward";
    case Purpose::kBackward: return "backward";
    case Purpose::kOptimizer: return "optimizer";
    case Purpose::kPrefill: return "prefill";
    case Purpose::kDecode: return "decode";
    case Purpose::kTensor: return "tensor";
    case Purpose::kData: return "data";
    case Purpose::kPipeline: return "pipeline";
    case Purpose::kExpert: return "expert";
    case Purpose::kCacheMove: return "KV cache";
    case Purpose::kModelLoad: return "model load";
    case Purpose::kKernel: return "kernels";
    case Purpose::kMemory: return "memory";
    case Purpose::kHost: return "CPU";
    case Purpose::kCollective: return "collectives";
    case Purpose::kMessage: return "messages";
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::jobs
