// Making IDs of any transport. rdma_create_id(3).
#pragma once

#include "abi/rdmacm/id_object.h"

namespace verbena::rdmacm {

// The program has to destroy it: for the checker.
void given_to_program(const IdObject& id);

// `channel` nullptr: the ID works synchronously. nullptr, and errno set, on failure.
[[nodiscard]] IdObject* create_id(rdma_event_channel* channel, void* context, rdma_port_space space,
                                  ibv_qp_type type);

}  // namespace verbena::rdmacm
