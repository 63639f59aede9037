// Deregisters memory that a posted receive names.
#include "loop.h"

__attribute__((noinline)) static void let_go(struct loop *l) {
  ibv_dereg_mr(l->mr);
  l->mr = NULL;
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  const int wrong = is_wrong(argc, argv);
  post_receive(l.b, piece(&l, 64));
  if (wrong) let_go(&l);
  ibv_destroy_qp(l.b);
  l.b = make_qp(&l, l.cq, 0);
  if (!wrong) let_go(&l);
  close_loop(&l);
  return 0;
}
