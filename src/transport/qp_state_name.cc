#include "transport/qp_state_name.h"

#include "base/check.h"

namespace verbena {

std::string_view verbs_name_of(QPState state) {
  switch (state) {
    case QPState::kReset: return "RESET";
    case QPState::kInit: return "INIT";
    case QPState::kRTR: return "RTR";
    case QPState::kRTS: return "RTS";
    case QPState::kSQD: return "SQD";
    case QPState::kSQE: return "SQE";
    case QPState::kError: return "ERR";
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
