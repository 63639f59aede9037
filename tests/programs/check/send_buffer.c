// Writes into a buffer that is being sent.
#include "loop.h"

__attribute__((noinline)) static void send_it(struct loop *l, int wrong) {
  require(post(l->a, IBV_WR_RDMA_WRITE, piece(l, 64), IBV_SEND_SIGNALED,
               (uintptr_t)l->memory + 1024, l->mr->rkey) == 0, "post");
  if (wrong) l->memory[3] = 'x';
  require(wait_for(l->cq).status == IBV_WC_SUCCESS, "the write");
  l->memory[3] = 'y';
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  send_it(&l, is_wrong(argc, argv));
  close_loop(&l);
  return 0;
}
