// A train: packets from the middle of one message, which differ in their PSNs and payload only, and
// are handed on as one, so that what is alike is done once. On the wire they are packets like all.
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr u32 kLongestTrain = 16;  // packets

enum class Trains : u8 { kNo, kYes };  // whether they are asked for

}  // namespace verbena
