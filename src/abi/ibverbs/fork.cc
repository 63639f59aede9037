// fork(2): memory is never pinned, so there is nothing to protect from it. ibv_fork_init(3).
#include <infiniband/verbs.h>

#include <cstddef>

extern "C" {
int ibv_dontfork_range(void* base, std::size_t size);
int ibv_dofork_range(void* base, std::size_t size);
}

int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, std::size_t) { return 0; }
int ibv_dofork_range(void*, std::size_t) { return 0; }
