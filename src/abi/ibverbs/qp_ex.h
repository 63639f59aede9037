// The ibv_wr_* interface of a queue pair. ibv_wr_post(3).
#pragma once

#include "abi/ibverbs/qp_object.h"

namespace verbena::abi {

// The operations that a QP of this type can build: bits of ibv_qp_create_send_ops_flags.
[[nodiscard]] u64 buildable_operations(QPType type);

// Gives the QP its builder, and functions for these operations. The others' stay null, as
// rdma-core's providers leave them: librpma looks whether there is one. The limits are those that
// were granted.
void enable_building(QPObject& qp, u64 operations, const SendQueueLimits& limits);

}  // namespace verbena::abi
