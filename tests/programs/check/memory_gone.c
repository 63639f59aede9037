// Unmaps memory that is registered.
#include "loop.h"

__attribute__((noinline)) static void let_go(struct loop *l, int wrong) {
  if (wrong) munmap(l->memory, kSize);
  ibv_dereg_mr(l->mr);
  if (!wrong) munmap(l->memory, kSize);
  l->mr = NULL;
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  let_go(&l, is_wrong(argc, argv));
  close_loop(&l);
  return 0;
}
