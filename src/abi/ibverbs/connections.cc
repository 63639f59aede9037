#include "abi/ibverbs/connections.h"

#include "abi/ibverbs/context_object.h"

verbena::host::ConnectionManager* verbena_connections(ibv_context* context) {
  return &verbena::abi::ContextObject::of(context).adapter->connections();
}
