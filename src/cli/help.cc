#include "cli/help.h"

#include "base/check.h"
#include "cli/help_texts.h"

namespace verbena::cli {

std::string_view help_text(HelpTopic topic) {
  switch (topic) {
    case HelpTopic::kVerbena: return kVerbenaHelp;
    case HelpTopic::kRun: return kRunHelp;
    case HelpTopic::kDevices: return kDevicesHelp;
    case HelpTopic::kStats: return kStatsHelp;
    case HelpTopic::kTop: return kTopHelp;
    case HelpTopic::kDoctor: return kDoctorHelp;
    case HelpTopic::kSim: return kSimHelp;
    case HelpTopic::kPlan: return kPlanHelp;
    case HelpTopic::kFabric: return kFabricHelp;
    case HelpTopic::kTest: return kTestHelp;
    case HelpTopic::kNIC: return kNICHelp;
    case HelpTopic::kDefault: return kDefaultHelp;
    case HelpTopic::kColl: return kCollHelp;
    case HelpTopic::kModel: return kModelHelp;
    case HelpTopic::kBench: return kBenchHelp;
    case HelpTopic::kNVMf: return kNVMfHelp;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::cli
