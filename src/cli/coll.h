// `verbena coll`: measures collective operations, as nccl-tests does. It starts ranks itself, or is
// a rank of the job that mpirun or torchrun started.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// Returns the exit status of the ranks: the first that is not 0.
[[nodiscard]] Expected<int> coll(const CollRequest& request);

}  // namespace verbena::cli
