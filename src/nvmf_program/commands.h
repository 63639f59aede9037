// The commands of verbena-nvmf. Each returns an error in words, or nothing.
#pragma once

#include "nvmf_program/options.h"

namespace verbena::nvmf_program {

[[nodiscard]] Expected<void> serve(const TargetOptions& options);
[[nodiscard]] Expected<void> discover(const DiscoverOptions& options);
[[nodiscard]] Expected<void> connect(const ConnectOptions& options);
[[nodiscard]] Expected<void> transfer(const TransferOptions& options);
[[nodiscard]] Expected<void> bench(const BenchOptions& options);

}  // namespace verbena::nvmf_program
