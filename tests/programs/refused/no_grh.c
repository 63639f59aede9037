// Brings a QP to RTR by a path without a GRH, which RoCE refuses, and makes an address handle of
// one. Exits with 0 when both fail with EINVAL.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

int main(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = ibv_open_device(devices[0]);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  int error = ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return 1;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.ah_attr.dlid = 1;
  attr.ah_attr.port_num = 1;
  for (int i = 0; i < 2; ++i)
    error = ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != EINVAL) return 2;
  return ibv_create_ah(pd, &attr.ah_attr) == NULL && errno == EINVAL ? 0 : 3;
}
