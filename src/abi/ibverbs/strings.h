// Names of the enumerators of verbs, for people.
#pragma once

#include <infiniband/verbs.h>

namespace verbena::abi {

[[nodiscard]] const char* wr_opcode_name(ibv_wr_opcode opcode);

}  // namespace verbena::abi
