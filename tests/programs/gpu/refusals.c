/* Registrations that are refused, by ranges that are no GPU memory as a whole. Prints each errno.
 *   refusals DRIVER */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "driver.h"

#define BYTES (1u << 20)

static void try_to_register(struct ibv_pd *pd, gpu_pointer at, size_t bytes) {
  errno = 0;
  struct ibv_mr *mr = ibv_reg_mr(pd, (void *)at, bytes, IBV_ACCESS_LOCAL_WRITE);
  printf("%s\n", mr != NULL ? "registered" : strerrorname_np(errno));
}

int main(int argc, char **argv) {
  gpu_pointer gpu = 0;
  if (argc != 2) return 2;
  load_driver(argv[1]);
  if (gpu_alloc(&gpu, BYTES) != 0) die("cuMemAlloc");
  struct ibv_device **devices = ibv_get_device_list(NULL);
  struct ibv_pd *pd = ibv_alloc_pd(ibv_open_device(devices[0]));
  try_to_register(pd, gpu + 4096, BYTES);
  try_to_register(pd, gpu - 4096, 8192);
  int (*control)(const char *, long) = dlsym(dlopen(argv[1], RTLD_NOW), "standin_control");
  control("registrations", 0);
  try_to_register(pd, gpu, BYTES);
  return 0;
}
