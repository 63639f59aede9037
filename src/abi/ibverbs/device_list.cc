// ibv_get_device_list and what can be asked of a device before it is opened.
#include <endian.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "abi/ibverbs/device_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "host/nic/nic_protocol.h"

namespace verbena::abi {
namespace {

// Every device this process has seen. Never destroyed: programs close devices in their own exit
// handlers.
class KnownDevices {
 public:
  DeviceObject& find_or_add(const host::LocalAddress& address) {
    const std::lock_guard lock(mutex_);
    for (const auto& device : devices_)
      if (same(device->address, address)) return *device;
    devices_.push_back(std::make_unique<DeviceObject>(address));
    return *devices_.back();
  }

 private:
  static bool same(const host::LocalAddress& a, const host::LocalAddress& b) {
    return a.device_name == b.device_name && a.interface == b.interface && a.ipv4 == b.ipv4 &&
           a.ipv6 == b.ipv6 && a.others == b.others && a.mtu == b.mtu;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceObject>> devices_;
};

KnownDevices& known_devices() {
  static KnownDevices& devices = *new KnownDevices;
  return devices;
}

}  // namespace

DeviceObject& device_on(const host::LocalAddress& address) {
  return known_devices().find_or_add(address);
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_device** ibv_get_device_list(int* num_devices) try {
  if (num_devices != nullptr) *num_devices = 0;
  const auto choice = host::chosen_address_from_environment();
  const auto addresses =
      choice ? host::choose_local_addresses(*choice) : tl::unexpected(choice.error());
  if (!addresses) {
    std::fprintf(stderr, "verbena: %s\n", addresses.error().message.c_str());
    return fail(addresses.error().error);
  }
  auto** list = new (std::nothrow) ibv_device*[addresses->size() + 1]();
  if (list == nullptr) return fail(ENOMEM);
  for (std::size_t i = 0; i < addresses->size(); ++i) list[i] = &device_on((*addresses)[i]).verbs;
  if (num_devices != nullptr) *num_devices = static_cast<int>(addresses->size());
  return list;
} catch (...) {
  return fail(errno_of_exception());
}

void ibv_free_device_list(ibv_device** list) try { delete[] list; } catch (...) {
  refuse(errno_of_exception());
}

const char* ibv_get_device_name(ibv_device* device) try { return device->name; } catch (...) {
  return fail(errno_of_exception());
}

__be64 ibv_get_device_guid(ibv_device* device) try {
  return htobe64(DeviceObject::of(device).address.node_guid);
} catch (...) {
  refuse(errno_of_exception());
  return 0;
}

int ibv_get_device_index(ibv_device* device) try {
  return DeviceObject::of(device).index();
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}
