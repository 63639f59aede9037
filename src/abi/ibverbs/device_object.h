// DeviceObject: one entry of ibv_get_device_list. Made when its address is first seen, and kept
// while the process lives: a program may use a device after the list is freed when it has opened
// it.
#pragma once

#include "abi/ibverbs/layout.h"
#include "host/network/local_address.h"

namespace verbena::abi {

// rdma-core's private continuation of ibv_device. libmlx5 and libefa compare `provider` with their
// own to learn whether a device is theirs; ours belongs to neither.
struct ProviderDevice {
  ibv_device verbs{};
  const void* provider = nullptr;
  u64 reserved[5] = {};  // reference count, list links, sysfs, features
};
static_assert(offsetof(ProviderDevice, provider) == sizeof(ibv_device));

struct DeviceObject : ProviderDevice {
  explicit DeviceObject(const host::LocalAddress& local_address);

  static DeviceObject& of(ibv_device* device) {
    return *static_cast<DeviceObject*>(reinterpret_cast<ProviderDevice*>(device));
  }
  // The number in the name: what netlink would call the device's index.
  [[nodiscard]] int index() const;

  const host::LocalAddress address;
};

// The one device of this process on that address.
[[nodiscard]] DeviceObject& device_on(const host::LocalAddress& address);

}  // namespace verbena::abi
