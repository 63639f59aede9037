// The faults that `verbena run --fault` asks of every device of a program.
#pragma once

#include <vector>

#include "faults/rule.h"
#include "host/os/error.h"

namespace verbena::host {

inline constexpr const char* kFaultVariable = "VERBENA_FAULT";  // rules; see faults/spec.h
inline constexpr const char* kSeedVariable = "VERBENA_SEED";    // decimal or 0x hexadecimal

struct FaultSettings {
  std::vector<faults::Rule> rules;  // empty: none
  u64 seed = 1;
};

// Reads the environment. EINVAL: one of the variables does not parse.
[[nodiscard]] Expected<FaultSettings> faults_from_environment();

}  // namespace verbena::host
