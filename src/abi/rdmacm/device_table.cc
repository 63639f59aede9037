#include "abi/rdmacm/device_table.h"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "abi/ibverbs/connections.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/rdmacm/layout.h"

namespace verbena::rdmacm {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<std::unique_ptr<OpenDevice>> devices;
};

Table* device_table = new Table;

// A child's devices are its own: the parent's adapters do not work there.
void start_anew_in_child() { device_table = new Table; }

std::unique_ptr<OpenDevice> open(ibv_device* device) {
  auto opened = std::make_unique<OpenDevice>();
  opened->verbs = ibv_open_device(device);
  if (opened->verbs == nullptr) return nullptr;
  opened->connections = verbena_connections(opened->verbs);
  opened->pd = ibv_alloc_pd(opened->verbs);
  ibv_device_attr attr{};
  if (opened->pd == nullptr || ibv_query_device(opened->verbs, &attr) != 0) {
    ibv_close_device(opened->verbs);  // with what is made from it
    return nullptr;
  }
  opened->max_initiator_depth = static_cast<u8>(attr.max_qp_init_rd_atom);
  opened->max_responder_resources = static_cast<u8>(attr.max_qp_rd_atom);
  return opened;
}

// Returns why there is none, if there is none.
int open_all(Table& to) {
  int count = 0;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list != nullptr) {
    for (ibv_device* device : std::span(list, static_cast<std::size_t>(count)))
      if (auto opened = open(device)) to.devices.push_back(std::move(opened));
    ibv_free_device_list(list);
  }
  return errno == ENOMEM ? ENOMEM : ENODEV;
}

}  // namespace

bool OpenDevice::has(const GID& gid) const {
  return std::ranges::find(identity().gids, gid) != identity().gids.end();
}

const GID* OpenDevice::gid_of_family(bool ipv4) const {
  const auto& gids = identity().gids;
  const auto found = std::ranges::find_if(
      gids, [&](const GID& gid) { return !gid.is_zero() && gid.is_ipv4() == ipv4; });
  return found == gids.end() ? nullptr : &*found;
}

// The later of two that are the same is RoCE v2 (host/live_adapter.cc).
u8 OpenDevice::gid_index(const GID& gid) const {
  const auto& gids = identity().gids;
  const auto found = std::find(gids.rbegin(), gids.rend(), gid);
  return found == gids.rend() ? u8{0} : static_cast<u8>(gids.rend() - found - 1);
}

std::span<const std::unique_ptr<OpenDevice>> open_devices() {
  static std::once_flag watching;
  std::call_once(watching, [] { pthread_atfork(nullptr, nullptr, start_anew_in_child); });
  Table& current = *device_table;
  const std::lock_guard lock(current.mutex);
  if (current.devices.empty()) {
    const int error = open_all(current);
    if (current.devices.empty()) errno = error;
  }
  return current.devices;
}

OpenDevice* find_device(const GID& address) {
  for (const auto& device : open_devices())
    if (device->has(address)) return device.get();
  return nullptr;
}

ibv_xrcd* shared_xrcd(OpenDevice& device) {
  const std::lock_guard lock(device_table->mutex);
  if (device.xrcd == nullptr) {
    ibv_xrcd_init_attr attr{.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                            .fd = -1,
                            .oflags = O_CREAT};
    device.xrcd = ibv_open_xrcd(device.verbs, &attr);
  }
  return device.xrcd;
}

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

ibv_context** rdma_get_devices(int* num_devices) try {
  if (num_devices != nullptr) *num_devices = 0;
  const auto devices = open_devices();
  if (devices.empty()) return nullptr;
  auto** list = new (std::nothrow) ibv_context*[devices.size() + 1]();
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  std::ranges::transform(devices, list, [](const auto& device) { return device->verbs; });
  if (num_devices != nullptr) *num_devices = static_cast<int>(devices.size());
  return list;
} catch (...) {
  return verbena::abi::fail(verbena::abi::errno_of_exception());
}

void rdma_free_devices(ibv_context** list) try { delete[] list; } catch (...) {
  verbena::abi::refuse(verbena::abi::errno_of_exception());
}
