/* Two processes, each with a QP and a region in GPU memory, that tell each other by pipes. */
#pragma once

#include <infiniband/verbs.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define BYTES (1u << 20)

enum { kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

struct end {
  unsigned qpn, rkey;
  gpu_pointer address;
  union ibv_gid gid;
};

static pid_t child; /* 0 in the child itself */
static int in, out;
static char *host;
static gpu_pointer gpu;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct end peer;

static void tell(const void *what, size_t bytes) {
  if (write(out, what, bytes) != (ssize_t)bytes) die("write");
}
static void hear(void *what, size_t bytes) {
  if (read(in, what, bytes) != (ssize_t)bytes) die("read");
}
static inline void say(void) { tell("", 1); }
static inline void listen_for(void) {
  char word;
  hear(&word, 1);
}

static inline enum ibv_wc_status poll_for(void) {
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) == 0) {
  }
  return wc.status;
}
/* Sleeps until an event comes. The next completion raises another. */
static inline void take_event(void) {
  struct ibv_cq *from;
  void *of_cq;
  if (ibv_get_cq_event(channel, &from, &of_cq) != 0) die("ibv_get_cq_event");
  ibv_ack_cq_events(from, 1);
  ibv_req_notify_cq(cq, 0);
}
static inline enum ibv_wc_status await(void) {
  take_event();
  return poll_for();
}

static inline void fill(char value) {
  memset(host, value, BYTES);
  if (gpu_to_device(gpu, host, BYTES) != 0) die("cuMemcpyHtoD");
}
static inline int holds(char value) {
  if (gpu_to_host(host, gpu, BYTES) != 0) die("cuMemcpyDtoH");
  for (unsigned i = 0; i < BYTES; ++i)
    if (host[i] != value) return 0;
  return 1;
}

static void make_qp(void) {
  struct ibv_qp_init_attr init = {.cap = {64, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  channel = ibv_create_comp_channel(context);
  cq = init.send_cq = init.recv_cq = ibv_create_cq(context, 128, NULL, channel, 0);
  ibv_req_notify_cq(cq, 0);
  qp = ibv_create_qp(pd, &init);
}

static void connect_qp(void) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer.qpn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr = (struct ibv_ah_attr){
      .grh = {.dgid = peer.gid, .sgid_index = 3, .hop_limit = 64}, .is_global = 1, .port_num = 1};
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC;
  if (ibv_modify_qp(qp, &attr, mask) != 0) die("RTS");
}

/* Forks; both processes then have a QP that is connected to the other's, and ready. */
static void become_pair(const char *driver) {
  int up[2], down[2];
  if (pipe(up) != 0 || pipe(down) != 0) die("pipe");
  child = fork();
  in = child == 0 ? down[0] : up[0];
  out = child == 0 ? up[1] : down[1];
  load_driver(driver);
  host = malloc(BYTES);
  if (gpu_alloc(&gpu, BYTES) != 0) die("cuMemAlloc");
  fill(child == 0 ? 'c' : 'p');
  context = ibv_open_device(ibv_get_device_list(NULL)[0]);
  pd = ibv_alloc_pd(context);
  mr = ibv_reg_mr(pd, (void *)gpu, BYTES, kRights);
  if (mr == NULL) die("ibv_reg_mr");
  make_qp();
  struct end own = {.qpn = qp->qp_num, .rkey = mr->rkey, .address = gpu};
  ibv_query_gid(context, 1, 3, &own.gid);
  tell(&own, sizeof own);
  hear(&peer, sizeof peer);
  connect_qp();
  say();
  listen_for();
}

/* Posts a request of `bytes` at `offset` of both buffers. */
static inline void post(enum ibv_wr_opcode opcode, unsigned offset, unsigned bytes) {
  struct ibv_sge sge = {gpu + offset, bytes, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.rdma = {.remote_addr = peer.address + offset, .rkey = peer.rkey}};
  struct ibv_send_wr *bad;
  if (ibv_post_send(qp, &wr, &bad) != 0) die("ibv_post_send");
}
static inline void post_receive(void) {
  struct ibv_sge sge = {gpu, BYTES, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  if (ibv_post_recv(qp, &wr, &bad) != 0) die("ibv_post_recv");
}

static inline int status_of_child(void) {
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
