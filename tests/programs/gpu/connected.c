/* Two ends that rdma_cm connects, so that it runs on iWARP too, each with buffers in GPU memory and
 * in one process. Every operation goes between these. Prints a line for each.
 *   connected DRIVER ADDRESS */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define BYTES (3u << 20)
#define PIECE (64u << 10)

enum { kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
              IBV_ACCESS_REMOTE_ATOMIC };

static char *host;
static struct ibv_mr *host_mr;
static struct rdma_cm_id *client, *server, *listener;

static void expect(int condition, const char *what) {
  printf("%s: %s\n", what, condition ? "right" : "wrong");
  if (!condition) exit(1);
}

static void fill(gpu_pointer gpu, unsigned seed) {
  for (unsigned i = 0; i < BYTES; ++i) host[i] = (char)(i * 7 + (i >> 9) + seed);
  if (gpu_to_device(gpu, host, BYTES) != 0) die("cuMemcpyHtoD");
}
static int holds(gpu_pointer gpu, unsigned bytes, unsigned seed) {
  if (gpu_to_host(host, gpu, bytes) != 0) die("cuMemcpyDtoH");
  for (unsigned i = 0; i < bytes; ++i)
    if (host[i] != (char)(i * 7 + (i >> 9) + seed)) return 0;
  return 1;
}

static void *accept_one(void *unused) {
  (void)unused;
  if (rdma_get_request(listener, &server) != 0) die("rdma_get_request");
  struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
  if (rdma_accept(server, &param) != 0) die("rdma_accept");
  return NULL;
}

static struct rdma_cm_id *make_endpoint(const char *address, const char *port, int passive) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = passive ? RAI_PASSIVE : 0},
                       *found;
  struct ibv_qp_init_attr init = {.cap = {128, 16, 2, 2, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  struct rdma_cm_id *id;
  if (rdma_getaddrinfo(address, port, &hints, &found) != 0) die("rdma_getaddrinfo");
  if (rdma_create_ep(&id, found, NULL, &init) != 0) die("rdma_create_ep");
  return id;
}

static void connect_both(const char *address) {
  pthread_t acceptor;
  char port[8];
  listener = make_endpoint(address, "0", 1);
  if (rdma_listen(listener, 4) != 0) die("rdma_listen");
  snprintf(port, sizeof port, "%u", ntohs(rdma_get_src_port(listener)));
  client = make_endpoint(address, port, 0);
  pthread_create(&acceptor, NULL, accept_one, NULL);
  struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
  if (rdma_connect(client, &param) != 0) die("rdma_connect");
  pthread_join(acceptor, NULL);
}

static struct ibv_mr *reg(struct rdma_cm_id *id, gpu_pointer at) {
  struct ibv_mr *mr = ibv_reg_mr(id->pd, (void *)at, BYTES, kAll);
  if (mr == NULL) die("ibv_reg_mr of GPU memory");
  return mr;
}

static enum ibv_wc_status send_completion(void) {
  struct ibv_wc wc;
  if (rdma_get_send_comp(client, &wc) < 1) die("rdma_get_send_comp");
  return wc.status;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  gpu_pointer a, b, c;
  load_driver(argv[1]);
  host = malloc(BYTES);
  if (gpu_alloc(&a, BYTES) != 0 || gpu_alloc(&b, BYTES) != 0 || gpu_alloc(&c, BYTES) != 0)
    die("cuMemAlloc");
  connect_both(argv[2]);
  struct ibv_mr *at_client = reg(client, a), *back = reg(client, c), *at_server = reg(server, b);

  /* The stand-in holds all copies for a while. These WRITEs are more than a QP's copies may be, so
   * its socket is not read until they go on. */
  void (*control)(const char *, long) = dlsym(dlopen(argv[1], RTLD_NOW), "standin_control");
  fill(a, 1);
  host_mr = ibv_reg_mr(client->pd, host, BYTES, IBV_ACCESS_LOCAL_WRITE);
  if (host_mr == NULL) die("ibv_reg_mr of host memory");
  if (control != NULL) control("stuck", 1);
  for (unsigned at = 0; at < BYTES; at += PIECE)
    if (rdma_post_write(client, NULL, host + at, PIECE, host_mr, 0, b + at,
                        at_server->rkey) != 0)
      die("rdma_post_write");
  usleep(200000);
  if (control != NULL) control("stuck", 0);
  if (rdma_post_read(client, NULL, (void *)c, BYTES, back, 0, b, at_server->rkey) != 0)
    die("rdma_post_read");
  for (unsigned at = 0; at < BYTES; at += PIECE) expect(send_completion() == 0, "write completes");
  expect(send_completion() == 0, "read completes");
  expect(holds(c, BYTES, 1), "read back");
  expect(holds(b, BYTES, 1), "written");
  if (rdma_post_write(client, NULL, (void *)c, BYTES, back, 0, b, at_server->rkey) != 0)
    die("rdma_post_write from GPU memory");
  if (rdma_post_read(client, NULL, (void *)a, BYTES, at_client, 0, b, at_server->rkey) != 0)
    die("rdma_post_read");
  expect(send_completion() == 0 && send_completion() == 0, "write from GPU memory completes");
  expect(holds(a, BYTES, 1), "written from GPU memory");

  /* Until the peer has executed what it was sent, there are messages. */
  unsigned long long (*count)(const char *) = dlsym(dlopen(argv[1], RTLD_NOW), "standin_count");
  for (int i = 0; i < 50 && count != NULL && count("copies_on_device") == 0; ++i) {
    usleep(20000);
    if (rdma_post_write(client, NULL, (void *)a, BYTES, at_client, 0, b, at_server->rkey) != 0)
      die("rdma_post_write");
    expect(send_completion() == 0, "one more write completes");
  }
  expect(count == NULL || count("copies_on_device") != 0, "copied on the GPU");

  if (rdma_post_recv(server, NULL, (void *)b, BYTES, at_server) != 0) die("rdma_post_recv");
  fill(a, 2);
  if (rdma_post_send(client, NULL, (void *)a, 1000000, at_client, 0) != 0) die("rdma_post_send");
  struct ibv_wc wc;
  if (rdma_get_recv_comp(server, &wc) < 1) die("rdma_get_recv_comp");
  expect(wc.status == 0 && wc.byte_len == 1000000 && holds(b, 1000000, 2), "sent");
  expect(send_completion() == 0, "send completes");

  unsigned long long word = 40, found;
  if (gpu_to_device(b, &word, 8) != 0) die("cuMemcpyHtoD");
  struct ibv_sge sge = {c, 8, back->lkey};
  struct ibv_send_wr add = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
  struct ibv_send_wr *bad;
  add.wr.atomic.remote_addr = b;
  add.wr.atomic.compare_add = 2;
  add.wr.atomic.rkey = at_server->rkey;
  if (ibv_post_send(client->qp, &add, &bad) != 0) die("ibv_post_send of an atomic");
  expect(send_completion() == 0, "atomic completes");
  if (gpu_to_host(&word, b, 8) != 0 || gpu_to_host(&found, c, 8) != 0) die("cuMemcpyDtoH");
  expect(word == 42 && found == 40, "added");

  if (gpu_free(b) != 0) die("cuMemFree");
  if (rdma_post_read(client, NULL, (void *)c, 4096, back, 0, b, at_server->rkey) != 0)
    die("rdma_post_read");
  expect(send_completion() != 0, "read of freed memory fails");
  rdma_dereg_mr(host_mr);
  rdma_dereg_mr(at_client);
  rdma_dereg_mr(back);
  rdma_dereg_mr(at_server);
  return 0;
}
