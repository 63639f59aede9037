// The transitions of an ID's QP, which librdmacm does for its program: Init when it is made; RTR
// and RTS when the connection is; Error when it ends. All give 0, or -1 and errno; an ID without a
// QP has nothing to do.
#pragma once

#include "abi/rdmacm/id_object.h"

namespace verbena::rdmacm {

// `qp`: just made, and not yet the ID's.
[[nodiscard]] int initialize_qp(IdObject& id, ibv_qp* qp);
[[nodiscard]] int connect_qp(IdObject& id);
[[nodiscard]] int fail_qp(IdObject& id);
// The active side has its answer: connects the QP, and tells the peer. If this fails, the caller
// must fail the QP too.
[[nodiscard]] int bring_up_and_confirm(IdObject& id);

// Sets the attributes for the state that `attr` names. Returns false if they are not known yet, or
// if there is no such step.
[[nodiscard]] bool attributes_for(const IdObject& id, ibv_qp_attr& attr, int& mask);

}  // namespace verbena::rdmacm
