#include "device/qp/engine_factory.h"

#include "base/check.h"
#include "transport/iwarp/engine.h"
#include "transport/rc/engine.h"
#include "transport/uc/engine.h"
#include "transport/ud/engine.h"

namespace verbena {

bool has_engine(QPType type, Transport transport) {
  if (transport == Transport::kIWARP) return type == QPType::kRC;
  switch (type) {
    case QPType::kRC:
    case QPType::kUC:
    case QPType::kUD:
    case QPType::kXRCInitiator:
    case QPType::kXRCTarget: return true;
    case QPType::kRawPacket: return false;
  }
  return false;  // a value that is no QP type, from the caller
}

std::unique_ptr<StreamEngine> make_stream_engine(const EngineParts& parts,
                                                 const DeviceConfig& config) {
  return std::make_unique<iwarp::IWARPEngine>(
      parts, iwarp::IWARPLimits{.max_ird = config.limits.max_rd_atomic,
                                .max_ord = config.limits.max_init_rd_atomic});
}

std::unique_ptr<DatagramEngine> make_engine(const EngineParts& parts, const DeviceConfig& config) {
  switch (parts.attributes.type) {
    case QPType::kRC:
    case QPType::kXRCInitiator:
    case QPType::kXRCTarget:
      return std::make_unique<RCEngine>(parts,
                                        RCLimits{.path = config.path,
                                                 .packet_bytes = config.packet_bytes,
                                                 .ack_interval = config.ack_interval,
                                                 .retransmission = config.retransmission,
                                                 .reordering_packets = config.reordering_packets,
                                                 .max_rd_atomic = config.limits.max_rd_atomic});
    case QPType::kUC: return std::make_unique<UCEngine>(parts);
    case QPType::kUD: return std::make_unique<UDEngine>(parts);
    case QPType::kRawPacket: break;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
