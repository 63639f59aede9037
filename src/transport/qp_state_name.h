// The states of a QP as the verbs interface names them: IBV_QPS_RESET is "RESET". IBTA Vol
// 1, 10.3.1.
#pragma once

#include <string_view>

#include "transport/qp_attributes.h"

namespace verbena {

[[nodiscard]] std::string_view verbs_name_of(QPState state);

}  // namespace verbena
