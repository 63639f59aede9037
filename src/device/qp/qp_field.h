// QPField: the attributes that a Modify QP may change. IBTA Vol 1, 11.2.5.2; ibv_modify_qp(3).
#pragma once

#include "base/types.h"

namespace verbena {

// Attributes as bits, one for each IBV_QP_* of the verbs interface.
enum class QPField : u32 {
  kState = 1u << 0,
  kCurrentState = 1u << 1,
  kEnableSQDNotify = 1u << 2,
  kAccessFlags = 1u << 3,
  kPKeyIndex = 1u << 4,
  kPort = 1u << 5,
  kQKey = 1u << 6,
  kAddressVector = 1u << 7,
  kPathMTU = 1u << 8,
  kTimeout = 1u << 9,
  kRetryCount = 1u << 10,
  kRNRRetry = 1u << 11,
  kRQPSN = 1u << 12,
  kMaxRdAtomic = 1u << 13,
  kAlternatePath = 1u << 14,
  kMinRNRTimer = 1u << 15,
  kSQPSN = 1u << 16,
  kMaxDestRdAtomic = 1u << 17,
  kPathMigrationState = 1u << 18,
  kCapacity = 1u << 19,
  kDestQPN = 1u << 20,
  kRateLimit = 1u << 25,
};

}  // namespace verbena
