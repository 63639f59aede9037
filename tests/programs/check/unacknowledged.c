// Destroys a completion queue before it acknowledges its event; another thread does so later.
#include <pthread.h>

#include "loop.h"

static void *acknowledge(void *cq) {
  sleep(3);
  ibv_ack_cq_events(cq, 1);
  return NULL;
}

__attribute__((noinline)) static void finish(struct loop *l) { close_loop(l); }

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  struct ibv_cq *cq;
  void *context;
  pthread_t thread;
  const int wrong = is_wrong(argc, argv);
  ibv_req_notify_cq(l.cq, 0);
  post(l.a, IBV_WR_RDMA_WRITE, piece(&l, 8), IBV_SEND_SIGNALED, (uintptr_t)l.memory + 64,
       l.mr->rkey);
  require(ibv_get_cq_event(l.channel, &cq, &context) == 0, "ibv_get_cq_event");
  if (wrong) {
    pthread_create(&thread, NULL, acknowledge, cq);
  } else {
    ibv_ack_cq_events(cq, 1);
  }
  finish(&l);
  if (wrong) pthread_join(thread, NULL);
  return 0;
}
