// What `verbena --help` says: the manual, also as docs/verbena.1 for man(1).
#pragma once

#include <string_view>

namespace verbena::cli {

enum class HelpTopic {
  kVerbena,
  kRun,
  kDevices,
  kStats,
  kTop,
  kDoctor,
  kSim,
  kPlan,
  kFabric,
  kColl
};

[[nodiscard]] std::string_view help_text(HelpTopic topic);

}  // namespace verbena::cli
