// Has more work in flight than its completion queue has entries.
#include "loop.h"

__attribute__((noinline)) static void write_it(struct loop *l) {
  require(post(l->a, IBV_WR_RDMA_WRITE, piece(l, 8), IBV_SEND_SIGNALED,
               (uintptr_t)l->memory + 64, l->mr->rkey) == 0, "post");
}

int main(int argc, char **argv) {
  struct loop l = open_loop(2);
  connect_qp(l.a, l.b);
  connect_qp(l.b, l.a);
  const int at_once = is_wrong(argc, argv) ? l.cq->cqe + 1 : l.cq->cqe;
  for (int i = 0; i < at_once; ++i) write_it(&l);
  close_loop(&l);
  return 0;
}
