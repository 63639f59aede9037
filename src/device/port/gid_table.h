// The GID table of the port, as QPs and address handles use it. IBTA Vol 1, 4.1.1; A17.4.
#pragma once

#include "device/device_config.h"
#include "transport/address_vector.h"

namespace verbena {

// Returns nullptr if `index` is beyond the table, or if the entry is empty.
inline const GIDEntry* gid_at(const DeviceConfig& config, u8 index) {
  if (index >= config.gids.size() || config.gids[index].gid.is_zero()) return nullptr;
  return &config.gids[index];
}

// Whether packets can go from the source index to the destination: both exist, in one IP version.
inline bool is_usable(const DeviceConfig& config, const AddressVector& path) {
  const GIDEntry* const source = gid_at(config, path.source_gid_index);
  return source != nullptr && !path.destination.is_zero() &&
         source->gid.is_ipv4() == path.destination.is_ipv4();
}

}  // namespace verbena
