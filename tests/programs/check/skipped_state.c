// Goes from INIT to RTS.
#include "loop.h"

__attribute__((noinline)) static void hurry(struct ibv_qp *qp) { to_rts(qp, 2); }

int main(int argc, char **argv) {
  struct loop l = open_loop(64);
  require(to_init(l.a) == 0, "to INIT");
  if (!is_wrong(argc, argv)) require(to_rtr(l.a, l.b->qp_num) == 0, "to RTR");
  hurry(l.a);
  close_loop(&l);
  return 0;
}
