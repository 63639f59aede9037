// Posts work to queue pairs that take none yet.
#include "loop.h"

__attribute__((noinline)) static void send_it(struct loop *l) {
  post(l->a, IBV_WR_SEND, piece(l, 8), IBV_SEND_SIGNALED, 0, 0);
}
__attribute__((noinline)) static void receive_it(struct loop *l) { post_receive(l->b, piece(l, 8)); }

int main(int argc, char **argv) {
  struct loop l = open_loop(64);
  const int wrong = is_wrong(argc, argv);
  if (wrong) receive_it(&l);
  require(to_init(l.a) == 0 && to_init(l.b) == 0, "to INIT");
  receive_it(&l);
  require(to_rtr(l.a, l.b->qp_num) == 0 && to_rtr(l.b, l.a->qp_num) == 0, "to RTR");
  if (wrong) send_it(&l);
  require(to_rts(l.a, 2) == 0 && to_rts(l.b, 2) == 0, "to RTS");
  send_it(&l);
  wait_for(l.cq);
  wait_for(l.cq);
  close_loop(&l);
  return 0;
}
