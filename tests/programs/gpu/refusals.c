/* Registrations that are refused, by ranges that are no GPU memory as a whole. Prints each errno.
 *   refusals DRIVER */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define BYTES (1u << 20)

static void try_to_register(struct ibv_pd *pd, gpu_pointer at, size_t bytes) {
  errno = 0;
  struct ibv_mr *mr = ibv_reg_mr(pd, (void *)at, bytes, IBV_ACCESS_LOCAL_WRITE);
  printf("%s\n", mr != NULL ? "registered" : strerrorname_np(errno));
}

/* A descriptor that is no dma-buf, as after a driver too old for them. */
static void try_to_register_dmabuf(struct ibv_pd *pd) {
  errno = 0;
  const int fd = eventfd(0, EFD_CLOEXEC); /* cannot be mapped */
  struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, BYTES, 4096, fd, IBV_ACCESS_LOCAL_WRITE);
  close(fd);
  printf("%s\n", mr != NULL ? "registered" : strerrorname_np(errno));
}

static void try_in_child(struct ibv_pd *pd, gpu_pointer at) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    try_to_register(pd, at, BYTES);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
  gpu_pointer gpu = 0, pool = 0;
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
  control("registrations", -1);
  try_to_register_dmabuf(pd);
  try_in_child(pd, gpu);
  if (gpu_pool_alloc(&pool, BYTES, NULL) != 0) die("cuMemAllocAsync");
  control("kill_context", 1);
  try_to_register(pd, pool, BYTES);
  return 0;
}
