// Why a call was refused where the errno value alone leaves people guessing: one line on standard
// error, under the same switch as other explanations (docs/explain.md) or with --check.
#pragma once

#include <string>

#include "abi/ibverbs/qp_object.h"

namespace verbena::abi {

// Both look again at what was refused, and say nothing if they find no reason.
void explain_refused_path(const char* call, const ibv_ah_attr& attr, const DeviceConfig& config);
// `why`: a sentence without its full stop.
void explain_refused_registration(const std::string& why);
void explain_refused_change(const QPObject& qp, const ibv_qp_attr& attr, int mask);

// Returns the first error of the path that to_address_vector() finds, or "" if there is none.
[[nodiscard]] std::string path_mistake(const ibv_ah_attr& attr, const DeviceConfig& config);
// Returns the error of a modification of a QP in `from`, or "" if none is known here.
[[nodiscard]] std::string change_mistake(QPType type, QPState from, const ibv_qp_attr& attr,
                                         u32 mask, const DeviceConfig& config);

}  // namespace verbena::abi
