// The text of `verbena --help`: the manual, also as pages for man(1) (cmake/manual_pages.py).
#pragma once

#include <string_view>

namespace verbena::cli {

enum class HelpTopic {
  kVerbena,
  kRun,
  kTest,
  kNIC,
  kDefault,
  kDevices,
  kStats,
  kTop,
  kDoctor,
  kSim,
  kPlan,
  kFabric,
  kColl,
  kModel,
  kBench,
  kNVMf
};

[[nodiscard]] std::string_view help_text(HelpTopic topic);

}  // namespace verbena::cli
