// Sends from registered memory that it has unmapped.
#include "loop.h"

__attribute__((noinline)) static void send_it(struct loop *l) {
  post(l->a, IBV_WR_RDMA_WRITE, piece(l, 64), IBV_SEND_SIGNALED, (uintptr_t)l->memory + 64,
       l->mr->rkey);
  wait_for(l->cq);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  const int wrong = is_wrong(argc, argv);
  if (wrong) munmap(l.memory, kSize);
  send_it(&l);
  if (!wrong) munmap(l.memory, kSize);  // of no use to anyone any more
  close_loop(&l);
  return 0;
}
