// `verbena test`: runs commands on virtual hosts, and says whether they succeeded: for people, as
// an exit status, and as JUnit's XML. What fails runs once more, checked and captured.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// The exit status: 0, that of the first command that failed (128 + N: ended by signal N), 124: the
// time was over, 130: interrupted.
[[nodiscard]] Expected<int> test(const TestRequest& request);

}  // namespace verbena::cli
