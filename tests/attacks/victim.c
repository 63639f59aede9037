// A program that is attacked: an RC QP that is connected to PEER, and a region that PEER may write.
// Prints "ready QPN R_KEY ADDRESS", as an attacker would know them at best, waits for a moment, and
// says what has become of it: "changed" or "unchanged", and with "zero" what deregistration leaves.
//
// usage: victim PEER PEER_QPN FIRST_PSN SECONDS
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "victim: %s fails\n", what);
  exit(2);
}

static void connect_to(struct ibv_qp* qp, const char* peer, uint32_t qpn, uint32_t psn) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  need(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "INIT");
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qpn;
  attr.rq_psn = psn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  uint8_t* gid = attr.ah_attr.grh.dgid.raw;
  gid[10] = gid[11] = 0xff;
  need(inet_pton(AF_INET, peer, gid + 12) == 1, "the address");
  need(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "RTR");
}

int main(int argc, char** argv) {
  need(argc == 5, "usage: victim PEER PEER_QPN FIRST_PSN SECONDS");
  struct ibv_device** devices = ibv_get_device_list(NULL);
  need(devices != NULL && devices[0] != NULL, "ibv_get_device_list");
  struct ibv_context* context = ibv_open_device(devices[0]);
  need(context != NULL, "ibv_open_device");
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  static uint8_t memory[4096];
  memset(memory, 0x11, sizeof memory);
  struct ibv_mr* mr =
      ibv_reg_mr(pd, memory, sizeof memory,
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  need(mr != NULL, "ibv_reg_mr");
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  need(qp != NULL, "ibv_create_qp");
  connect_to(qp, argv[1], (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
  printf("ready %u %u %llu\n", qp->qp_num, mr->rkey, (unsigned long long)(uintptr_t)memory);
  fflush(stdout);
  struct ibv_wc wc;
  int changed = 0;
  for (int i = 0; i < atoi(argv[4]) * 1000 && !changed; ++i) {
    (void)ibv_poll_cq(cq, 1, &wc);
    usleep(1000);
    for (size_t at = 0; at < sizeof memory; ++at) changed |= memory[at] != 0x11;
  }
  need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  int left = 0;
  for (size_t at = 0; at < sizeof memory; ++at) left |= memory[at] != 0;
  printf("%s %s\n", changed ? "changed" : "unchanged", left ? "kept" : "zero");
  return 0;
}
