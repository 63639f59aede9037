// Cancels a thread in each call that waits, joins it, and uses the object again. Each line is
// "NAME cancelled", or "NAME returned" where the call ended before.
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_context* context;
static struct ibv_comp_channel* completions;
static struct rdma_event_channel* events;
static struct rdma_cm_id* listener;
static int listening_socket;

static void require(int is_true, const char* text) {
  if (is_true) return;
  perror(text);
  exit(1);
}

static void* completion(void* unused) {
  struct ibv_cq* cq;
  ibv_get_cq_event(completions, &cq, &unused);
  return NULL;
}

static void* asynchronous_event(void* unused) {
  struct ibv_async_event event;
  ibv_get_async_event(context, &event);
  return unused;
}

static void* connection_event(void* unused) {
  struct rdma_cm_event* event;
  rdma_get_cm_event(events, &event);
  return unused;
}

static void* request(void* unused) {
  struct rdma_cm_id* id;
  rdma_get_request(listener, &id);
  return unused;
}

static void* stream_accept(void* unused) {
  raccept(listening_socket, NULL, NULL);
  return unused;
}

static void* stream_poll(void* unused) {
  struct pollfd waiting = {.fd = listening_socket, .events = POLLIN};
  rpoll(&waiting, 1, -1);
  return unused;
}

static void cancel(const char* name, void* (*wait)(void*)) {
  pthread_t thread;
  require(pthread_create(&thread, NULL, wait, NULL) == 0, "pthread_create");
  usleep(100000);  // until it waits; what has not begun to is cancelled at its first system call
  require(pthread_cancel(thread) == 0, "pthread_cancel");
  void* result;
  require(pthread_join(thread, &result) == 0, "pthread_join");
  printf("%s %s\n", name, result == PTHREAD_CANCELED ? "cancelled" : "returned");
  fflush(stdout);
}

static struct rdma_cm_id* listen_at(struct rdma_addrinfo* address) {
  struct ibv_qp_init_attr attributes = {
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  struct rdma_cm_id* id;
  require(rdma_create_ep(&id, address, NULL, &attributes) == 0, "rdma_create_ep");
  require(rdma_listen(id, 1) == 0, "rdma_listen");
  return id;
}

int main(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  require(devices != NULL && devices[0] != NULL, "ibv_get_device_list");
  context = ibv_open_device(devices[0]);
  completions = ibv_create_comp_channel(context);
  struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, completions, 0);
  require(cq != NULL && ibv_req_notify_cq(cq, 0) == 0, "ibv_create_cq");
  cancel("ibv_get_cq_event", completion);
  require(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
  require(ibv_destroy_comp_channel(completions) == 0, "ibv_destroy_comp_channel");
  cancel("ibv_get_async_event", asynchronous_event);

  events = rdma_create_event_channel();
  struct rdma_cm_id* id;
  require(rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  cancel("rdma_get_cm_event", connection_event);
  require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
  rdma_destroy_event_channel(events);

  struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
  struct rdma_addrinfo* address;
  require(rdma_getaddrinfo(NULL, "7171", &hints, &address) == 0, "rdma_getaddrinfo");
  listener = listen_at(address);
  cancel("rdma_get_request", request);
  rdma_destroy_ep(listener);

  listening_socket = rsocket(AF_INET, SOCK_STREAM, 0);
  require(rbind(listening_socket, address->ai_src_addr, address->ai_src_len) == 0, "rbind");
  require(rlisten(listening_socket, 1) == 0, "rlisten");
  cancel("raccept", stream_accept);
  cancel("rpoll", stream_poll);
  require(rclose(listening_socket) == 0, "rclose");
  rdma_freeaddrinfo(address);
  require(ibv_close_device(context) == 0, "ibv_close_device");
  return 0;
}
