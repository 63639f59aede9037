// The help texts, src/cli/help/*.txt, embedded at build time.
#pragma once

#include <string_view>

namespace verbena::cli {

extern const std::string_view kVerbenaHelp, kRunHelp, kDevicesHelp, kStatsHelp, kTopHelp,
    kDoctorHelp, kSimHelp, kNICHelp, kDefaultHelp, kTestHelp, kCollHelp, kModelHelp, kBenchHelp,
    kNVMfHelp, kFabricHelp, kPlanHelp;

}  // namespace verbena::cli
