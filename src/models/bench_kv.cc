#include "models/commands.h"

namespace verbena::models {

int bench_kv(std::span<const std::string>) { return fail(kExitUsage, "not there yet"); }

}  // namespace verbena::models
