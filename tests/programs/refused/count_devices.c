// Exits with the number of RDMA devices.
#include <infiniband/verbs.h>

int main(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  if (devices) ibv_free_device_list(devices);
  return count;
}
