// Binding an ID to an address and a port. rdma_bind_addr(3).
#pragma once

#include "abi/rdmacm/id_object.h"

namespace verbena::rdmacm {

// Binds an idle ID. Returns 0, or -1 and sets errno.
[[nodiscard]] int bind_to(IdObject& id, SocketEndpoint endpoint);

}  // namespace verbena::rdmacm
