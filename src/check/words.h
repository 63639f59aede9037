// The words by which findings name things.
#pragma once

#include <string>

#include "check/regions.h"
#include "check/work_queue.h"
#include "transport/qp_attributes.h"

namespace verbena::check {

[[nodiscard]] std::string hex(u64 number);
[[nodiscard]] std::string words_of(QPN qpn);
[[nodiscard]] std::string words_of(QPState state);
[[nodiscard]] std::string words_of(const Region& region);
[[nodiscard]] std::string words_of(const Work& work);

}  // namespace verbena::check
