/* Two processes, each with a buffer in GPU memory. One sends its buffer, then writes another content,
 * and both sleep until a completion comes. Then the receiver frees its buffer, and another write
 * fails. Prints what each has found.
 *   transfer DRIVER */
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define BYTES (1u << 20)

struct end {
  unsigned qpn, rkey;
  gpu_pointer address;
  union ibv_gid gid;
};

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static char *host;

static void tell(int fd, const void *what, size_t bytes) {
  if (write(fd, what, bytes) != (ssize_t)bytes) die("write");
}
static void hear(int fd, void *what, size_t bytes) {
  if (read(fd, what, bytes) != (ssize_t)bytes) die("read");
}

static enum ibv_wc_status await(const char *who) {
  struct ibv_cq *from;
  void *context;
  struct ibv_wc wc;
  if (ibv_get_cq_event(channel, &from, &context) != 0) die("ibv_get_cq_event");
  ibv_ack_cq_events(from, 1);
  while (ibv_poll_cq(cq, 1, &wc) == 0) {
  }
  printf("%s: %s\n", who, ibv_wc_status_str(wc.status));
  ibv_req_notify_cq(cq, 0);
  return wc.status;
}

static void fill(gpu_pointer gpu, char value) {
  memset(host, value, BYTES);
  if (gpu_to_device(gpu, host, BYTES) != 0) die("cuMemcpyHtoD");
}
static int holds(gpu_pointer gpu, char value) {
  if (gpu_to_host(host, gpu, BYTES) != 0) die("cuMemcpyDtoH");
  for (unsigned i = 0; i < BYTES; ++i)
    if (host[i] != value) return 0;
  return 1;
}

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_pd *pd) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  channel = ibv_create_comp_channel(context);
  cq = init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, channel, 0);
  ibv_req_notify_cq(cq, 0);
  return ibv_create_qp(pd, &init);
}

static void connect_qp(struct ibv_qp *qp, const struct end *peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer->qpn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr = (struct ibv_ah_attr){
      .grh = {.dgid = peer->gid, .sgid_index = 3, .hop_limit = 64}, .is_global = 1, .port_num = 1};
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("RTS");
}

int main(int argc, char **argv) {
  int up[2], down[2];
  if (argc != 2 || pipe(up) != 0 || pipe(down) != 0) die("pipe");
  const pid_t child = fork();
  const int in = child == 0 ? down[0] : up[0], out = child == 0 ? up[1] : down[1];
  load_driver(argv[1]);
  gpu_pointer gpu = 0;
  host = malloc(BYTES);
  if (gpu_alloc(&gpu, BYTES) != 0) die("cuMemAlloc");
  fill(gpu, child == 0 ? 'c' : 'p');

  struct ibv_device **devices = ibv_get_device_list(NULL);
  struct ibv_context *context = ibv_open_device(devices[0]);
  struct ibv_pd *pd = ibv_alloc_pd(context);
  struct ibv_mr *mr =
      ibv_reg_mr(pd, (void *)gpu, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr == NULL) die("ibv_reg_mr");
  struct ibv_qp *qp = make_qp(context, pd);
  struct end own = {.qpn = qp->qp_num, .rkey = mr->rkey, .address = gpu}, peer;
  ibv_query_gid(context, 1, 3, &own.gid);
  tell(out, &own, sizeof own);
  hear(in, &peer, sizeof peer);
  connect_qp(qp, &peer);

  struct ibv_sge all = {gpu, BYTES, mr->lkey};
  char word = 0;
  if (child == 0) {
    struct ibv_recv_wr receive = {.sg_list = &all, .num_sge = 1}, *bad;
    if (ibv_post_recv(qp, &receive, &bad) != 0) die("ibv_post_recv");
    tell(out, &word, 1);
    await("receive");
    printf("sent: %s\n", holds(gpu, 'p') ? "right" : "wrong");
    tell(out, &word, 1);
    hear(in, &word, 1);
    printf("written: %s\n", holds(gpu, 'q') ? "right" : "wrong");
    if (gpu_free(gpu) != 0) die("cuMemFree");
    tell(out, &word, 1);
    struct ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0) die("ibv_get_async_event");
    ibv_ack_async_event(&event);
    printf("receiver: %s\n", ibv_event_type_str(event.event_type));
    hear(in, &word, 1);
    return 0;
  }
  struct ibv_send_wr wr = {
      .sg_list = &all, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr *bad;
  hear(in, &word, 1);
  if (ibv_post_send(qp, &wr, &bad) != 0) die("ibv_post_send");
  await("send");
  hear(in, &word, 1);
  fill(gpu, 'q');
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = peer.address;
  wr.wr.rdma.rkey = peer.rkey;
  if (ibv_post_send(qp, &wr, &bad) != 0) die("ibv_post_send");
  await("write");
  tell(out, &word, 1);
  hear(in, &word, 1);
  if (ibv_post_send(qp, &wr, &bad) != 0) die("ibv_post_send");
  await("write to freed memory");
  tell(out, &word, 1);
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
