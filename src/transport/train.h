// A train: middle packets of one message, which differ only in their PSNs and payload. They are
// passed on as one, so that the common work is done once. On the wire they are ordinary packets.
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr u32 kLongestTrain = 16;  // packets

enum class Trains : u8 { kNo, kYes };  // whether the caller accepts them

}  // namespace verbena
