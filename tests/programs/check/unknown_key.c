// Sends by a key that was deregistered.
#include "loop.h"

__attribute__((noinline)) static void send_it(struct loop *l, struct ibv_sge sge) {
  post(l->a, IBV_WR_RDMA_WRITE, sge, IBV_SEND_SIGNALED, (uintptr_t)l->memory + 64, l->mr->rkey);
  wait_for(l->cq);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  struct ibv_mr *other = ibv_reg_mr(l.pd, l.memory, kSize, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = piece(&l, 64);
  sge.lkey = other->lkey;
  if (is_wrong(argc, argv)) {
    ibv_dereg_mr(other);
    send_it(&l, sge);
  } else {
    send_it(&l, sge);
    ibv_dereg_mr(other);
  }
  close_loop(&l);
  return 0;
}
