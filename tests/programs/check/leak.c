// Ends without destroying what it has made.
#include "loop.h"

__attribute__((noinline)) static struct loop make_it(void) { return connected_loop(); }

int main(int argc, char **argv) {
  struct loop l = make_it();
  if (!is_wrong(argc, argv)) close_loop(&l);
  return 0;
}
