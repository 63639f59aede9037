// Task: one thing that a rank of a job has to do: to compute, or to take part in an operation of a
// communicator. It begins when the tasks that it comes after have ended on this rank; its
// computing by the GPU, that by the CPU, and the operations of one communicator, are done one at a
// time, in their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "base/types.h"

namespace verbena::jobs {

// Purpose: the purpose of a task, as tables and timelines group them.
enum class Purpose : u8 {
  kForward,    // computing
  kBackward,   // computing
  kOptimizer,  // computing
  kPrefill,    // computing
  kDecode,     // computing
  kTensor,     // parallelism within a layer
  kData,       // gradients and sharded parameters
  kPipeline,   // activations and their gradients, between stages
  kExpert,     // tokens to their experts and back
  kCacheMove,  // the KV cache, from those that prefill to those that decode
  kModelLoad,  // parameters to all replicas
  // --- of an imported trace, which does not say more
  kKernel,      // computing
  kMemory,      // computing: loads and stores of other memory
  kHost,        // computing, by the CPU
  kCollective,  // operations of groups
  kMessage,     // from one rank to another
};
inline constexpr std::size_t kPurposes = static_cast<std::size_t>(Purpose::kMessage) + 1;
// "forward", "KV cache" and so on.
[[nodiscard]] std::string_view name_of(Purpose purpose);

struct Task {
  static constexpr u32 kComputes = ~u32{0};
  enum class Unit : u8 { kGPU, kCPU };

  std::string name;
  Purpose purpose = Purpose::kForward;
  Duration lasts{};              // of computing
  Unit unit = Unit::kGPU;        // that computes
  u32 communicator = kComputes;  // by number
  u32 operation = 0;             // of the program's, by number
  std::vector<u32> after;        // earlier tasks of the same rank

  [[nodiscard]] bool computes() const { return communicator == kComputes; }
  [[nodiscard]] bool occupies_gpu() const { return computes() && unit == Unit::kGPU; }
};

}  // namespace verbena::jobs
