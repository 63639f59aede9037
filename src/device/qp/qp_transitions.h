// The state machine of a QP: which transitions Modify QP may make, and with which attributes.
// IBTA Vol 1, 10.3.1, figure 124; 11.2.5.2, tables 96-98; ibv_modify_qp(3). Where these leave room,
// it is as Linux has it, since that is what programs are tested with: Reset to Error is refused,
// and so is changing attributes in RTR. Transitions that the device makes by itself (to SQE, to
// Error) are not its business.
#pragma once

#include "device/qp/qp_field.h"
#include "transport/qp_attributes.h"

namespace verbena {

struct TransitionRule {
  bool legal = false;
  u32 required = 0;  // QPField bits, all of which must be given
  u32 optional = 0;  // QPField bits that may be given besides; kState always may
};

// Returns the rule of a QP that its connection manager brings to RTS, with a stream: iWARP.
[[nodiscard]] TransitionRule stream_transition_rule(QPState from, QPState to);
[[nodiscard]] bool fits(const TransitionRule& rule, u32 fields);
[[nodiscard]] TransitionRule transition_rule(QPType type, QPState from, QPState to);
[[nodiscard]] bool transition_allowed(QPType type, QPState from, QPState to, u32 fields);

}  // namespace verbena
