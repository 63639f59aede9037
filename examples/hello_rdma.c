/* A first RDMA program: the client writes a text into the server's memory, and then tells it so.
 *
 *   cc hello_rdma.c -o hello_rdma -lrdmacm -libverbs
 *   ./hello_rdma                      the server
 *   ./hello_rdma SERVER [TEXT]        the client
 *
 * The server's memory is registered for remote writes. Its address and key travel to the client as
 * private data of the connection, so that the write needs no help from the server's processor. */
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7471"
#define SIZE 256

struct place { /* of the server's memory, big-endian */
  uint64_t address;
  uint32_t key;
};

static void require(int is_true, const char* what) {
  if (is_true) return;
  perror(what);
  exit(1);
}

/* An endpoint: a connection's identifier and its queue pair. */
static struct rdma_cm_id* endpoint(const char* node, int flags) {
  struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
  require(rdma_getaddrinfo(node, PORT, &hints, &found) == 0, "rdma_getaddrinfo");
  struct ibv_qp_init_attr wanted = {
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1};
  struct rdma_cm_id* id;
  require(rdma_create_ep(&id, found, NULL, &wanted) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

static void await_success(int (*next)(struct rdma_cm_id*, struct ibv_wc*), struct rdma_cm_id* id,
                          const char* what) {
  struct ibv_wc completion;
  require(next(id, &completion) == 1, what);
  if (completion.status == IBV_WC_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(completion.status));
  exit(1);
}

static void serve(void) {
  static char memory[SIZE];
  struct rdma_cm_id *listener = endpoint(NULL, RAI_PASSIVE), *id;
  require(rdma_listen(listener, 1) == 0, "rdma_listen");
  printf("waiting for a client\n");
  fflush(stdout);
  require(rdma_get_request(listener, &id) == 0, "rdma_get_request");

  struct ibv_mr* region = rdma_reg_write(id, memory, SIZE);
  require(region != NULL, "rdma_reg_write");
  require(rdma_post_recvv(id, NULL, NULL, 0) == 0, "rdma_post_recvv");
  struct place place = {htobe64((uintptr_t)memory), htobe32(region->rkey)};
  struct rdma_conn_param parameters = {.private_data = &place,
                                       .private_data_len = sizeof(place),
                                       .responder_resources = 1,
                                       .initiator_depth = 1};
  require(rdma_accept(id, &parameters) == 0, "rdma_accept");
  await_success(rdma_get_recv_comp, id, "the client's message");
  printf("the client wrote: %s\n", memory);

  rdma_disconnect(id);
  rdma_dereg_mr(region);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

static void write_to(const char* server, const char* text) {
  static char memory[SIZE];
  struct rdma_cm_id* id = endpoint(server, 0);
  struct ibv_mr* region = rdma_reg_msgs(id, memory, SIZE);
  require(region != NULL, "rdma_reg_msgs");
  struct rdma_conn_param parameters = {
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  require(rdma_connect(id, &parameters) == 0, "rdma_connect");

  struct place place;
  require(id->event->param.conn.private_data_len >= sizeof(place), "no private data");
  memcpy(&place, id->event->param.conn.private_data, sizeof(place));
  snprintf(memory, SIZE, "%s", text);
  require(rdma_post_write(id, NULL, memory, SIZE, region, 0, be64toh(place.address),
                          be32toh(place.key)) == 0,
          "rdma_post_write");
  await_success(rdma_get_send_comp, id, "the write");
  require(rdma_post_send(id, NULL, NULL, 0, NULL, 0) == 0, "rdma_post_send");
  await_success(rdma_get_send_comp, id, "the message");
  printf("written\n");

  rdma_disconnect(id);
  rdma_dereg_mr(region);
  rdma_destroy_ep(id);
}

int main(int argc, char** argv) {
  if (argc > 1)
    write_to(argv[1], argc > 2 ? argv[2] : "hello");
  else
    serve();
  return 0;
}
