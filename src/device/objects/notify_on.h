// NotifyOn: which completions a consumer that is about to sleep wants to hear of. IBTA 11.4.2.2.
#pragma once

#include "base/types.h"

namespace verbena {

enum class NotifyOn : u8 { kAnyCompletion, kSolicitedOnly };

}  // namespace verbena
