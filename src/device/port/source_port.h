// The UDP source port by which a device sends the packets of a QP.
#pragma once

#include "device/device_config.h"
#include "transport/address_vector.h"
#include "wire/roce/source_port.h"

namespace verbena {

// The flow label decides the port if the path has one. Only the first `qps_with_own_port` QPs have
// ports of their own; blocks of the others share one, so that packets of many QPs can leave in one
// burst.
[[nodiscard]] constexpr u16 udp_source_port(const DeviceConfig& config, const AddressVector& path,
                                            QPN local, QPN remote) {
  constexpr u32 kQPsOfPort = 64;
  if (path.flow_label != 0) return source_port_of_flow_label(path.flow_label);
  if (local.value - config.first_qpn.value < config.egress.qps_with_own_port)
    return source_port_of(local, remote);
  return source_port_of(QPN{local.value / kQPsOfPort}, QPN{remote.value / kQPsOfPort});
}

}  // namespace verbena
