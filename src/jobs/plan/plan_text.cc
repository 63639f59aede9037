#include "jobs/plan/plan_text.h"

#include <fmt/format.h>

namespace verbena::jobs {

std::string dollars_text(double dollars) {
  if (dollars >= 1e9) return fmt::format("${:.3g} G", dollars / 1e9);
  if (dollars >= 1e6) return fmt::format("${:.3g} M", dollars / 1e6);
  if (dollars >= 1e3) return fmt::format("${:.3g} k", dollars / 1e3);
  return fmt::format("${:.0f}", dollars);
}

std::string dollars_text(Range dollars) {
  return fmt::format("{} .. {}", dollars_text(dollars.low), dollars_text(dollars.high));
}

std::string watts_text(Range watts) {
  return fmt::format("{:.3g} .. {:.3g} kW", watts.low / 1e3, watts.high / 1e3);
}

}  // namespace verbena::jobs
