#include "congestion/parameters.h"

namespace verbena {

bool WindowParameters::valid() const {
  constexpr u64 kMaxOctets = 100'000'000;
  if (kind == Kind::kNone) return true;
  return octets >= 1 && octets <= kMaxOctets && (kind != Kind::kByRate || line_rate > Rate{});
}

bool CongestionParameters::valid() const {
  return window.valid() && notification.valid() &&
         std::visit([](const auto& parameters) { return parameters.valid(); }, algorithm);
}

}  // namespace verbena
