// How the rate of each flow is controlled: which algorithm, with which parameters.
#pragma once

#include <variant>

#include "congestion/dcqcn/parameters.h"

namespace verbena {

// Every flow goes as fast as it can.
struct UncontrolledParameters {
  [[nodiscard]] bool valid() const { return true; }
};

struct CongestionParameters {
  std::variant<UncontrolledParameters, DCQCNParameters> algorithm;
  NotificationParameters notification;

  // All within the ranges that their headers name.
  [[nodiscard]] bool valid() const;
  [[nodiscard]] bool controls() const {
    return !std::holds_alternative<UncontrolledParameters>(algorithm);
  }
};

}  // namespace verbena
