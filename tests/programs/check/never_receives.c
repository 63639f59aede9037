// Posts no receive for the messages that come.
#include "loop.h"

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  if (!is_wrong(argc, argv)) post_receive(l.b, piece(&l, 64));
  post(l.a, IBV_WR_SEND, piece(&l, 64), IBV_SEND_SIGNALED, 0, 0);
  wait_for(l.cq);
  close_loop(&l);
  return 0;
}
