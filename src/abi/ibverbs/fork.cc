// fork(2): memory is never pinned, so there is nothing to protect from it. ibv_fork_init(3).
#include <infiniband/verbs.h>
#include "abi/ibverbs/exceptions.h"

#include <cstddef>

extern "C" {
int ibv_dontfork_range(void* base, std::size_t size);
int ibv_dofork_range(void* base, std::size_t size);
}

int ibv_fork_init() try { return 0; } catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}
ibv_fork_status ibv_is_fork_initialized() try { return IBV_FORK_UNNEEDED; } catch (...) {
  return IBV_FORK_DISABLED;
}
int ibv_dontfork_range(void*, std::size_t) try { return 0; } catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}
int ibv_dofork_range(void*, std::size_t) try { return 0; } catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}
