// The functions that librdmacm.so.1 uses of libibverbs.so.1 beyond its public interface: the
// adapter is there, and one process must have only one. Exported at the version VERBENA_PRIVATE;
// both libraries are built together.
#pragma once

#include <infiniband/verbs.h>

#include "host/cm/connection_manager.h"

// Returns the manager of the context's adapter. It is valid while any context of that device is
// open.
extern "C" verbena::host::ConnectionManager* verbena_connections(ibv_context* context);
