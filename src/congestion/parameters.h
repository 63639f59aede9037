// How the rate of each flow is controlled: which algorithm, with which parameters.
#pragma once

#include <variant>

#include "congestion/dcqcn/parameters.h"

namespace verbena {

// Every flow goes as fast as it can.
struct UncontrolledParameters {};

struct CongestionParameters {
  std::variant<UncontrolledParameters, DCQCNParameters> algorithm;
  NotificationParameters notification;

  [[nodiscard]] bool controls() const {
    return !std::holds_alternative<UncontrolledParameters>(algorithm);
  }
};

}  // namespace verbena
