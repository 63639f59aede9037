// ibv_ah_attr to AddressVector and back. RoCE routes by GID alone: a GRH is required (IBTA
// A17.4.3), LIDs mean nothing. Within an InfiniBand subnet it is the other way round: the LID says
// where, and a GRH adds nothing (wire/ib/lid_address.h).
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "device/device_config.h"
#include "transport/address_vector.h"

namespace verbena::abi {

// Returns nullopt if there is no GRH (on InfiniBand: no LID), no destination, another port than
// ours, or a GID index outside of the table.
[[nodiscard]] std::optional<AddressVector> to_address_vector(const ibv_ah_attr& attr,
                                                             const DeviceConfig& config);
[[nodiscard]] ibv_ah_attr to_ibv(const AddressVector& path);
// Whether the device's port is on an InfiniBand subnet.
[[nodiscard]] bool is_infiniband(const DeviceConfig& config);

}  // namespace verbena::abi
