// The interface between rdma-core's libibverbs and its kernel providers, at all its version
// numbers.
//
// Programs linked to libmlx5, libefa or librdmacm load those libraries, and those do not load
// without these names. We load no provider and talk to no kernel driver, so a provider's
// registration has no effect, and none of the commands is ever reached through one of our devices.
// A direct call of a command returns that it is not supported. Only the functions that read the
// public objects work.
#include "abi/ibverbs/private_symbols.h"

#include <infiniband/verbs.h>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/strings.h"
#include "abi/ibverbs/symver.h"

namespace {

// The types of GIDs as sysfs names them: its file says "IB/RoCE v1" or "RoCE v2".
enum class SysfsGIDType : int { kInfiniBandOrRoCEv1 = 0, kRoCEv2 = 1 };

}  // namespace

extern "C" {

// Returns 0, or -1 and sets errno. An empty entry has the first type.
int verbena_query_gid_type(ibv_context* context, uint8_t port, unsigned index,
                           SysfsGIDType* type) noexcept {
  ibv_gid_entry entry{};
  const int error = ibv_query_gid_ex(context, port, index, &entry, 0);
  if (error != 0 && error != ENODATA) return -1;
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? SysfsGIDType::kRoCEv2
                                                 : SysfsGIDType::kInfiniBandOrRoCEv1;
  return 0;
}

const char* verbena_wr_opcode_str(ibv_wr_opcode opcode) noexcept {
  return verbena::abi::wr_opcode_name(opcode);
}

extern const bool verbena_disassociate_destroy;
const bool verbena_disassociate_destroy = false;

void verbena_ignore() noexcept {}

unsigned verbena_no_attributes() noexcept { return 0; }

int verbena_unsupported() noexcept { return verbena::abi::refuse(EOPNOTSUPP); }

int verbena_no_descriptor() noexcept { return verbena::abi::fail_with_minus_one(EOPNOTSUPP); }

void* verbena_no_pointer() noexcept { return verbena::abi::fail(EOPNOTSUPP); }

}  // extern "C"

#define VERBENA_AT_EVERY_NODE(function, name)                    \
  VERBENA_DEFAULT_VERSION(function, name, "IBVERBS_PRIVATE_34"); \
  VERBENA_OLD_VERSION(function, name, "IBVERBS_PRIVATE_57");     \
  VERBENA_OLD_VERSION(function, name, "IBVERBS_PRIVATE_59");     \
  VERBENA_OLD_VERSION(function, name, "IBVERBS_PRIVATE_64");     \
  VERBENA_OLD_VERSION(function, name, "IBVERBS_PRIVATE_65");
VERBENA_PRIVATE_SYMBOLS(VERBENA_AT_EVERY_NODE)

// How a provider says that it is there: one name for each node.
VERBENA_DEFAULT_VERSION(verbena_ignore, verbs_register_driver_34, "IBVERBS_PRIVATE_34");
VERBENA_DEFAULT_VERSION(verbena_ignore, verbs_register_driver_57, "IBVERBS_PRIVATE_57");
VERBENA_DEFAULT_VERSION(verbena_ignore, verbs_register_driver_59, "IBVERBS_PRIVATE_59");
VERBENA_DEFAULT_VERSION(verbena_ignore, verbs_register_driver_64, "IBVERBS_PRIVATE_64");
VERBENA_DEFAULT_VERSION(verbena_ignore, verbs_register_driver_65, "IBVERBS_PRIVATE_65");
VERBENA_OLD_VERSION(verbena_ignore, ibv_register_driver, "IBVERBS_1.1");
