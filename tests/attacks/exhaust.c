// A tenant that takes what it can get: QPs, entries of completion queues, memory regions of MR_BYTES
// each, until the device refuses or MOST are there. Prints "qps N cqes N mrs N".
//
// usage: exhaust MOST MR_BYTES
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

static char memory[1 << 20];

int main(int argc, char** argv) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context =
      argc == 3 && devices != NULL && devices[0] != NULL ? ibv_open_device(devices[0]) : NULL;
  struct ibv_pd* pd = context != NULL ? ibv_alloc_pd(context) : NULL;
  struct ibv_cq* cq = pd != NULL ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
  const size_t mr_bytes = argc == 3 ? (size_t)atol(argv[2]) : 0;
  if (cq == NULL || mr_bytes == 0 || mr_bytes > sizeof memory) {
    fprintf(stderr, "exhaust: no device, or no such size\n");
    return 2;
  }
  const int most = atoi(argv[1]);
  int qps = 0, mrs = 0, cqes = 1;
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
  while (qps < most && ibv_create_qp(pd, &init) != NULL) ++qps;
  while (cqes < most && ibv_create_cq(context, cqes + 1, NULL, NULL, 0) != NULL) ++cqes;
  while (mrs < most && ibv_reg_mr(pd, memory, mr_bytes, IBV_ACCESS_LOCAL_WRITE) != NULL) ++mrs;
  printf("qps %d cqes %d mrs %d\n", qps, cqes, mrs);
  return 0;
}
