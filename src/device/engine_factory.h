// Which transport serves which type of QP.
#pragma once

#include <memory>

#include "device/device_config.h"
#include "transport/datagram_engine.h"

namespace verbena {

// Whether the device has this type of QP at all.
[[nodiscard]] bool has_engine(QPType type);
// Precondition: has_engine(parts.attributes.type).
[[nodiscard]] std::unique_ptr<DatagramEngine> make_engine(const EngineParts& parts,
                                                          const DeviceConfig& config);

}  // namespace verbena
