// SimRun: one of several runs that are put side by side, and what it has come to, as text that one
// process can send to another.
#pragma once

#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/sim_table.h"
#include "fabric/scenario/setting.h"

namespace verbena::cli {

struct SimRun {
  std::string scenario;  // a file
  std::vector<fabric::Setting> settings;
  std::string title;
  Expected<SimColumn> column = failure(kExitCannot, "it did not run");
  bool has_run = false;  // else there is no column
  bool was_interrupted = false;
};

// Returns the results of those `runs` that have run, by their places, in JSON.
[[nodiscard]] std::string packed(const std::vector<SimRun>& runs);
void unpack(const std::string& text, std::vector<SimRun>& runs);

}  // namespace verbena::cli
