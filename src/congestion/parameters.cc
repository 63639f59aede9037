#include "congestion/parameters.h"

namespace verbena {

bool CongestionParameters::valid() const {
  return notification.valid() &&
         std::visit([](const auto& parameters) { return parameters.valid(); }, algorithm);
}

}  // namespace verbena
