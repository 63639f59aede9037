// Turning a request down. rdma_reject(3).
#pragma once

#include "abi/rdmacm/id_object.h"
#include "wire/ib/cm/reject_reason.h"

namespace verbena::rdmacm {

// Rejects the request that made the ID. Returns 0, or -1 and sets errno.
[[nodiscard]] int reject(IdObject& id, std::span<const u8> private_data, cm::RejectReason reason);

}  // namespace verbena::rdmacm
