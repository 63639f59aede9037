// The sizes that an object is granted: at least what was asked for, at least one, within the limits
// of the device. IBTA Vol 1, 11.2.2 - 11.2.5; the man pages of ibv_create_cq, _srq and _qp.
// kInvalidArgument: more than the device has.
#pragma once

#include "device/device_config.h"
#include "device/qp/qp_init.h"

namespace verbena {

[[nodiscard]] Result<u32> grant_cqe(u32 asked, const DeviceLimits& limits);
[[nodiscard]] Result<ReceiveQueueLimits> grant_srq(const ReceiveQueueLimits& asked,
                                                   const DeviceLimits& limits);
// Also kInvalidArgument: no PD or no CQ. kNotSupported: not a type of QP that the device has.
[[nodiscard]] Result<QPInit> grant_qp(const QPInit& asked, const DeviceConfig& config);

}  // namespace verbena
