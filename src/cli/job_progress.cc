#include "cli/job_progress.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::cli {

std::string text_of(const jobs::Progress& progress, double seconds) {
  const double part = progress.part ? progress.part() : 0;
  const std::string done = fmt::format(
      "{} simulated, {:.2f} M events/s, {:.1f} %", fabric::duration_text(progress.simulated),
      static_cast<double>(progress.events) / seconds / 1e6, part * 100);
  if (part <= 0) return done;
  return done + fmt::format(", {:.0f} s to go", seconds * (1 - part) / part);
}

}  // namespace verbena::cli
