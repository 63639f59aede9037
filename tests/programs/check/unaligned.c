// Adds to an address that is no multiple of 8.
#include "loop.h"

__attribute__((noinline)) static void add_to(struct loop *l, uint64_t offset) {
  if (post(l->a, IBV_WR_ATOMIC_FETCH_AND_ADD, piece(l, 8), IBV_SEND_SIGNALED,
           (uintptr_t)l->memory + offset, l->mr->rkey) == 0)
    wait_for(l->cq);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  add_to(&l, is_wrong(argc, argv) ? 1028 : 1024);
  close_loop(&l);
  return 0;
}
