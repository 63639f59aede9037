// Sends by a key of another protection domain.
#include "loop.h"

__attribute__((noinline)) static void send_it(struct loop *l, struct ibv_sge sge) {
  post(l->a, IBV_WR_RDMA_WRITE, sge, IBV_SEND_SIGNALED, (uintptr_t)l->memory + 64, l->mr->rkey);
  wait_for(l->cq);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  struct ibv_pd *pd = ibv_alloc_pd(l.context);
  struct ibv_mr *mr =
      ibv_reg_mr(is_wrong(argc, argv) ? pd : l.pd, l.memory, kSize, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = piece(&l, 64);
  sge.lkey = mr->lkey;
  send_it(&l, sge);
  ibv_dereg_mr(mr);
  ibv_dealloc_pd(pd);
  close_loop(&l);
  return 0;
}
