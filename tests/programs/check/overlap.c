// Reads twice into the same memory at a time.
#include "loop.h"

__attribute__((noinline)) static void read_to(struct loop *l, uint64_t offset) {
  struct ibv_sge to = piece(l, 64);
  to.addr += offset;
  post(l->a, IBV_WR_RDMA_READ, to, IBV_SEND_SIGNALED, (uintptr_t)l->memory + 1024, l->mr->rkey);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  read_to(&l, 0);
  read_to(&l, is_wrong(argc, argv) ? 63 : 64);
  wait_for(l.cq);
  wait_for(l.cq);
  read_to(&l, 0);
  wait_for(l.cq);
  close_loop(&l);
  return 0;
}
