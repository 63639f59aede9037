#include "cli/job_progress.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::cli {

std::string text_of(const jobs::Progress& progress, double seconds) {
  const double part = progress.part ? progress.part() : 0;
  return fmt::format("{} simulated, {:.2f} M events/s, {:.1f} %, {:.0f} s to go",
                     fabric::duration_text(progress.simulated),
                     static_cast<double>(progress.events) / seconds / 1e6, part * 100,
                     part > 0 ? seconds * (1 - part) / part : 0);
}

}  // namespace verbena::cli
