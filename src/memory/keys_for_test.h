// Names that this layer's tests have in common.
#pragma once

#include "memory/protection_table.h"

namespace verbena::test {

inline constexpr PDId kPD{1}, kOtherPD{2};
inline constexpr QPN kQP{17};

template <typename T>
Status status_of(const Result<T>& result) {
  return result.has_value() ? Status::kOk : result.error();
}

}  // namespace verbena::test
