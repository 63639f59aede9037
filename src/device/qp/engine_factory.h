// Which transport serves which type of QP.
#pragma once

#include <memory>

#include "device/device_config.h"
#include "transport/datagram_engine.h"
#include "transport/stream_engine.h"

namespace verbena {

// Whether a device of this transport has this type of QP at all.
[[nodiscard]] bool has_engine(QPType type, Transport transport);
// Of an iWARP device. Precondition: has_engine(parts.attributes.type).
[[nodiscard]] std::unique_ptr<StreamEngine> make_stream_engine(const EngineParts& parts,
                                                               const DeviceConfig& config);
// Of an InfiniBand device. The same.
[[nodiscard]] std::unique_ptr<DatagramEngine> make_engine(const EngineParts& parts,
                                                          const DeviceConfig& config);

}  // namespace verbena
