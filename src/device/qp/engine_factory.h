// Which transport serves which type of QP.
#pragma once

#include <memory>

#include "device/device_config.h"
#include "transport/datagram_engine.h"
#include "transport/stream_engine.h"

namespace verbena {

// Whether a device of this transport has this type of QP at all.
[[nodiscard]] bool has_engine(QPType type, Transport transport);
// Makes the engine of an iWARP device. Precondition: has_engine(parts.attributes.type).
[[nodiscard]] std::unique_ptr<StreamEngine> make_stream_engine(const EngineParts& parts,
                                                               const DeviceConfig& config);
// Makes the engine of an InfiniBand device. It has the same precondition.
[[nodiscard]] std::unique_ptr<DatagramEngine> make_engine(const EngineParts& parts,
                                                          const DeviceConfig& config);

}  // namespace verbena
