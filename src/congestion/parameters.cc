#include "congestion/parameters.h"

namespace verbena {

bool WindowParameters::valid() const {
  constexpr u64 kMaxBytes = 100'000'000;
  if (kind == Kind::kNone) return true;
  return bytes >= 1 && bytes <= kMaxBytes && (kind != Kind::kByRate || line_rate > Rate{});
}

bool CongestionParameters::valid() const {
  return window.valid() && notification.valid() &&
         std::visit([](const auto& parameters) { return parameters.valid(); }, algorithm);
}

}  // namespace verbena
