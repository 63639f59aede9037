// NVMe status codes: Status Code Type in bits 10:8, Status Code in bits 7:0. NVM Express Base 2.0,
// 3.3.3.2 (figures 93 to 97); NVMe over Fabrics 1.1a, 3.3.
#pragma once

#include "base/types.h"

namespace verbena::nvme {

enum class Status : u16 {
  kSuccess = 0x000,
  kInvalidOpcode = 0x001,
  kInvalidField = 0x002,
  kDataTransferError = 0x004,
  kInternalError = 0x006,
  kAbortRequested = 0x007,
  kInvalidNamespace = 0x00b,
  kCommandSequenceError = 0x00c,
  kInvalidSGLDescriptor = 0x00d,
  kDataSGLLengthInvalid = 0x00f,
  kSGLDescriptorTypeInvalid = 0x011,
  kSGLOffsetInvalid = 0x016,
  kHostIdInconsistent = 0x018,
  kKeepAliveTimerExpired = 0x019,
  kKeepAliveTimeoutInvalid = 0x01a,
  kNamespaceWriteProtected = 0x020,
  kTransientTransportError = 0x022,
  kLBAOutOfRange = 0x080,
  kCapacityExceeded = 0x081,
  kInvalidQueueId = 0x101,
  kInvalidQueueSize = 0x102,
  kAsyncEventLimitExceeded = 0x105,
  kInvalidLogPage = 0x109,
  kFeatureNotSaveable = 0x10d,
  kFeatureNotChangeable = 0x10e,
  kConnectIncompatibleFormat = 0x180,
  kConnectControllerBusy = 0x181,
  kConnectInvalidParameters = 0x182,
  kConnectRestartDiscovery = 0x183,
  kConnectInvalidHost = 0x184,
  kDiscoveryRestart = 0x190,
  kAuthenticationRequired = 0x191,
  kWriteFault = 0x280,
  kUnrecoveredReadError = 0x281,
  kCompareFailure = 0x285,
};

// Do Not Retry, in the position that it has beside a status of 11 bits.
inline constexpr u16 kDoNotRetry = 0x4000;

}  // namespace verbena::nvme
