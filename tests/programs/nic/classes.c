// Sends itself, over and over, BULK datagrams and a last one of traffic class 0, then an urgent one
// of TRAFFIC_CLASS. Prints how often the urgent one arrived before the last one, and the mean time
// of each in microseconds: "overtook N of ROUNDS urgent_us T last_us T".
//
// usage: classes TRAFFIC_CLASS
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20, BULK = 100, BYTES = 1000, GRH_BYTES = 40, QKEY = 0x1234, LIMIT_US = 10000000 };
enum { LAST = 1, URGENT = 2 };  // immediate data

static char memory[2 * (GRH_BYTES + BYTES)];
static struct ibv_mr* mr;
static struct ibv_qp* qp;
static struct ibv_cq* cq;

static void die(const char* what) {
  perror(what);
  exit(2);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct ibv_pd* open_qp(struct ibv_context* context) {
  struct ibv_pd* pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 4 * BULK, NULL, NULL, 0);
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  if (cq == NULL || mr == NULL) die("resources");
  struct ibv_qp_init_attr init = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .qp_type = IBV_QPT_UD,
                                  .cap = {.max_send_wr = 2 * BULK,
                                          .max_recv_wr = 8,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1}};
  qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
  if (qp == NULL ||
      ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
    die("QP");
  to.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(qp, &to, IBV_QP_STATE) != 0) die("RTR");
  to.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) die("RTS");
  return pd;
}

static struct ibv_ah* address_of_own(struct ibv_pd* pd, union ibv_gid own, int traffic_class) {
  struct ibv_ah_attr attr = {.is_global = 1,
                             .port_num = 1,
                             .grh = {.dgid = own,
                                     .hop_limit = 64,
                                     .traffic_class = (unsigned char)traffic_class}};
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  if (ah == NULL) die("address handle");
  return ah;
}

// Bulk goes to a QP that does not exist.
static void send_one(struct ibv_ah* ah, int imm) {
  struct ibv_sge sge = {(uintptr_t)memory + sizeof memory / 2, BYTES, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND_WITH_IMM,
                           .send_flags = IBV_SEND_SIGNALED,
                           .imm_data = (unsigned)imm};
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = imm != 0 ? qp->qp_num : qp->qp_num + 1;
  wr.wr.ud.remote_qkey = QKEY;
  struct ibv_send_wr* bad;
  if (ibv_post_send(qp, &wr, &bad) != 0) die("send");
}

static void post_receive(void) {
  struct ibv_sge sge = {(uintptr_t)memory, GRH_BYTES + BYTES, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  if (ibv_post_recv(qp, &wr, &bad) != 0) die("receive");
}

// Waits until all that was sent is completed and both messages are here. at[]: when they came.
static void await_round(double* at) {
  int left = BULK + 4;
  for (const double begin = now_us(); left > 0;) {
    struct ibv_wc wc;
    if (now_us() - begin > LIMIT_US) {
      fprintf(stderr, "classes: a message is lost\n");
      exit(3);
    }
    if (ibv_poll_cq(cq, 1, &wc) == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) die(ibv_wc_status_str(wc.status));
    if (wc.opcode == IBV_WC_RECV) at[wc.imm_data] = now_us();
    --left;
  }
}

int main(int argc, char** argv) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context =
      argc == 2 && devices != NULL && devices[0] != NULL ? ibv_open_device(devices[0]) : NULL;
  union ibv_gid own;
  if (context == NULL || ibv_query_gid(context, 1, 0, &own) != 0) die("device");
  struct ibv_pd* pd = open_qp(context);
  struct ibv_ah *low = address_of_own(pd, own, 0), *high = address_of_own(pd, own, atoi(argv[1]));
  double urgent_us = 0, last_us = 0;
  int overtook = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    double at[3], begin = now_us();
    for (int i = 0; i < 2; ++i) post_receive();
    for (int i = 0; i < BULK; ++i) send_one(low, 0);
    send_one(low, LAST);
    send_one(high, URGENT);
    await_round(at);
    overtook += at[URGENT] < at[LAST];
    urgent_us += (at[URGENT] - begin) / ROUNDS;
    last_us += (at[LAST] - begin) / ROUNDS;
  }
  printf("overtook %d of %d urgent_us %.0f last_us %.0f\n", overtook, ROUNDS, urgent_us, last_us);
  return 0;
}
