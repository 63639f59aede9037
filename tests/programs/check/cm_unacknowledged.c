// Destroys an ID of rdma_cm before it acknowledges an event of it; another thread does so later.
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "loop.h"

static void *acknowledge(void *event) {
  sleep(3);
  rdma_ack_cm_event(event);
  return NULL;
}

__attribute__((noinline)) static void finish(struct rdma_cm_id *id) {
  require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

int main(int argc, char **argv) {
  struct rdma_event_channel *channel = rdma_create_event_channel();
  struct rdma_cm_id *id;
  struct rdma_cm_event *event;
  struct sockaddr_in self = {.sin_family = AF_INET};
  pthread_t thread;
  const int wrong = is_wrong(argc, argv);
  require(inet_pton(AF_INET, getenv("VERBENA_ADDRESS"), &self.sin_addr) == 1, "VERBENA_ADDRESS");
  require(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  require(rdma_resolve_addr(id, NULL, (struct sockaddr *)&self, 2000) == 0, "rdma_resolve_addr");
  require(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  if (wrong) {
    pthread_create(&thread, NULL, acknowledge, event);
  } else {
    rdma_ack_cm_event(event);
  }
  finish(id);
  if (wrong) pthread_join(thread, NULL);
  rdma_destroy_event_channel(channel);
  return 0;
}
