// The checks of `verbena doctor` on the machine, independent of devices: CPUs, clock, kernel,
// versions.
#pragma once

#include "cli/finding.h"

namespace verbena::cli {

[[nodiscard]] Findings examine_machine();

// Each function judges one value of the machine.
[[nodiscard]] Finding judge_clock(const std::string& clocksource);  // "": not known
[[nodiscard]] Finding judge_cpus(unsigned count);
[[nodiscard]] Finding judge_governor(const std::string& governor, const std::string& driver);

}  // namespace verbena::cli
