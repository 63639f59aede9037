// Fills its send queue with work that never completes visibly.
#include "loop.h"

__attribute__((noinline)) static int write_it(struct loop *l, unsigned flags) {
  return post(l->a, IBV_WR_RDMA_WRITE, piece(l, 8), flags, (uintptr_t)l->memory + 64, l->mr->rkey);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  const int wrong = is_wrong(argc, argv);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr granted;
  require(ibv_query_qp(l.a, &attr, IBV_QP_CAP, &granted) == 0, "ibv_query_qp");
  for (uint32_t i = 1; i <= granted.cap.max_send_wr + 4; ++i) {
    const int signaled = !wrong && i % granted.cap.max_send_wr == 0;
    write_it(&l, signaled ? IBV_SEND_SIGNALED : 0);
    if (signaled) wait_for(l.cq);
  }
  close_loop(&l);
  return 0;
}
