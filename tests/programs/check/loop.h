// Two queue pairs of one process, connected to each other, for programs that do one thing with
// them: wrongly where their argument is "wrong", and as they should where it is "right".
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPort = 1, kGIDIndex = 3, kSize = 4096, kSendDepth = 8, kReceiveDepth = 8 };

struct loop {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp *a, *b;
  char* memory;  // kSize bytes that `mr` covers
  struct ibv_mr* mr;
};

static inline void require(int condition, const char* what) {
  if (condition) return;
  printf("FAILED: %s: %s\n", what, strerror(errno));
  exit(3);
}

static inline int is_wrong(int argc, char** argv) {
  require(argc == 2, "an argument, wrong or right");
  return strcmp(argv[1], "wrong") == 0;
}

static inline struct ibv_qp* make_qp(struct loop* l, struct ibv_cq* cq, int signal_all) {
  struct ibv_qp_init_attr attr = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .cap = {.max_send_wr = kSendDepth,
                                          .max_recv_wr = kReceiveDepth,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC,
                                  .sq_sig_all = signal_all};
  struct ibv_qp* qp = ibv_create_qp(l->pd, &attr);
  require(qp != NULL, "ibv_create_qp");
  return qp;
}

static inline int to_init(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = kPort,
                             .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                IBV_ACCESS_REMOTE_ATOMIC};
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int to_rtr(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer,
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = 1,
                             .ah_attr = {.is_global = 1, .port_num = kPort}};
  attr.ah_attr.grh.sgid_index = kGIDIndex;
  require(ibv_query_gid(qp->context, kPort, kGIDIndex, &attr.ah_attr.grh.dgid) == 0,
          "ibv_query_gid");
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static inline int to_rts(struct ibv_qp* qp, int rnr_retry) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = (uint8_t)rnr_retry,
                             .max_rd_atomic = 4};
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline void connect_qp(struct ibv_qp* qp, struct ibv_qp* peer) {
  require(to_init(qp) == 0, "to INIT");
  require(to_rtr(qp, peer->qp_num) == 0, "to RTR");
  require(to_rts(qp, 2) == 0, "to RTS");
}

static inline struct loop open_loop(int cqe) {
  struct loop l;
  struct ibv_device** list = ibv_get_device_list(NULL);
  require(list != NULL && list[0] != NULL, "a device");
  l.context = ibv_open_device(list[0]);
  require(l.context != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  l.pd = ibv_alloc_pd(l.context);
  l.channel = ibv_create_comp_channel(l.context);
  l.cq = ibv_create_cq(l.context, cqe, NULL, l.channel, 0);
  l.memory = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  l.mr = ibv_reg_mr(l.pd, l.memory, kSize,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC);
  require(l.pd && l.channel && l.cq && l.mr, "objects");
  l.a = make_qp(&l, l.cq, 0);
  l.b = make_qp(&l, l.cq, 0);
  return l;
}

static inline struct loop connected_loop(void) {
  struct loop l = open_loop(64);
  connect_qp(l.a, l.b);
  connect_qp(l.b, l.a);
  return l;
}

static inline void close_loop(struct loop* l) {
  ibv_destroy_qp(l->a);
  ibv_destroy_qp(l->b);
  if (l->mr != NULL) ibv_dereg_mr(l->mr);
  require(ibv_destroy_cq(l->cq) == 0, "ibv_destroy_cq");
  require(ibv_destroy_comp_channel(l->channel) == 0, "ibv_destroy_comp_channel");
  require(ibv_dealloc_pd(l->pd) == 0, "ibv_dealloc_pd");
  require(ibv_close_device(l->context) == 0, "ibv_close_device");
}

// Returns an SGE of the region's first `length` bytes.
static inline struct ibv_sge piece(struct loop* l, uint32_t length) {
  struct ibv_sge sge = {.addr = (uintptr_t)l->memory, .length = length, .lkey = l->mr->lkey};
  return sge;
}

static inline int post_receive(struct ibv_qp* qp, struct ibv_sge sge) {
  struct ibv_recv_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  return ibv_post_recv(qp, &wr, &bad);
}

static inline int post(struct ibv_qp* qp, enum ibv_wr_opcode opcode, struct ibv_sge sge,
                       unsigned flags, uint64_t remote, uint32_t rkey) {
  struct ibv_send_wr *bad,
      wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags};
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = 1;
  } else if (opcode == IBV_WR_SEND_WITH_INV) {
    wr.invalidate_rkey = rkey;
  } else {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
  }
  return ibv_post_send(qp, &wr, &bad);
}

static inline struct ibv_wc wait_for(struct ibv_cq* cq) {
  struct ibv_wc wc;
  int taken;
  while ((taken = ibv_poll_cq(cq, 1, &wc)) == 0) usleep(100);
  require(taken == 1, "ibv_poll_cq");
  return wc;
}
