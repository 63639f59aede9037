// PDId: a protection domain, by its number. IBTA Vol 1, 10.2.3.
#pragma once

#include "base/types.h"

namespace verbena {

using PDId = Id<struct PDTag, u32>;

}  // namespace verbena
