#include "abi/ibverbs/connections.h"

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/exceptions.h"

verbena::host::ConnectionManager* verbena_connections(ibv_context* context) try {
  return &verbena::abi::ContextObject::of(context).adapter->connections();
} catch (...) {
  return verbena::abi::fail(verbena::abi::errno_of_exception());
}
