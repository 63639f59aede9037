// DeviceTable: the RDMA devices of this process as librdmacm uses them: each opened once, when the
// first ID needs one, and never closed, since programs may still use them in their exit handlers.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>
#include <vector>

#include "host/cm/connection_manager.h"

namespace verbena::rdmacm {

inline constexpr u8 kPort = 1;  // the only one

struct OpenDevice {
  ibv_context* verbs = nullptr;
  host::ConnectionManager* connections = nullptr;
  ibv_pd* pd = nullptr;      // for IDs that bring none
  ibv_xrcd* xrcd = nullptr;  // for IDs that bring none; opened when the first needs it
  u8 max_initiator_depth = 0, max_responder_resources = 0;

  [[nodiscard]] const host::ConnectionIdentity& identity() const { return connections->identity(); }
  [[nodiscard]] bool has(const GID& gid) const;
  // Returns a GID of the family, or nullptr.
  [[nodiscard]] const GID* gid_of_family(bool ipv4) const;
  [[nodiscard]] u8 gid_index(const GID& gid) const;  // RoCE v2; 0 if it is not there
};

// Empty, and errno set: there is none, or none can be opened.
[[nodiscard]] std::span<const std::unique_ptr<OpenDevice>> open_devices();
// Returns nullptr if no device has that address.
[[nodiscard]] OpenDevice* find_device(const GID& address);

// Returns the device's own XRC domain, or nullptr and sets errno if it cannot be opened.
[[nodiscard]] ibv_xrcd* shared_xrcd(OpenDevice& device);

}  // namespace verbena::rdmacm
