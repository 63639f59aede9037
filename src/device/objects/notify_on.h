// NotifyOn: the completions that wake a consumer which is about to sleep. IBTA 11.4.2.2.
#pragma once

#include "base/types.h"

namespace verbena {

enum class NotifyOn : u8 { kAnyCompletion, kSolicitedOnly };

}  // namespace verbena
