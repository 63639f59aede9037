// Posts a receive that is too small for the message.
#include "loop.h"

__attribute__((noinline)) static void receive_it(struct loop *l, uint32_t length) {
  require(post_receive(l->b, piece(l, length)) == 0, "ibv_post_recv");
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  receive_it(&l, is_wrong(argc, argv) ? 16 : 64);
  post(l.a, IBV_WR_SEND, piece(&l, 64), IBV_SEND_SIGNALED, 0, 0);
  wait_for(l.cq);
  wait_for(l.cq);
  close_loop(&l);
  return 0;
}
