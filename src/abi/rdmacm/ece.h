// Enhanced connection establishment: what the two ends of a connection agree on beyond the
// standard. A QP that is the ID's own agrees by itself; for another, the program asks and answers.
// rdma_set_local_ece(3), rdma_get_remote_ece(3).
#pragma once

#include "abi/rdmacm/id_object.h"

namespace verbena::rdmacm {

// These return the ECE of the REQ and of the REP.
[[nodiscard]] cm::ECE offer_of(const IdObject& id);
[[nodiscard]] cm::ECE answer_of(const IdObject& id);

// Tells a new QP, which is not yet the ID's, what the peer offers, if a request made the ID.
// Returns 0, or -1 and sets errno.
[[nodiscard]] int settle_offer(IdObject& id, ibv_qp* qp);
// Tells the ID's own QP what the peer has taken of our offer. EINVAL: the answer is of another
// vendor.
[[nodiscard]] int settle_answer(IdObject& id);

}  // namespace verbena::rdmacm
