// Ends without destroying an ID of rdma_cm, and its channel.
#include <rdma/rdma_cma.h>

#include "loop.h"

struct pair {
  struct rdma_event_channel *channel;
  struct rdma_cm_id *id;
};

__attribute__((noinline)) static struct pair make_it(void) {
  struct pair made = {.channel = rdma_create_event_channel()};
  require(made.channel != NULL, "rdma_create_event_channel");
  require(rdma_create_id(made.channel, &made.id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  return made;
}

int main(int argc, char **argv) {
  struct pair made = make_it();
  if (is_wrong(argc, argv)) return 0;
  rdma_destroy_id(made.id);
  rdma_destroy_event_channel(made.channel);
  return 0;
}
