// Answered: the message that a REJ or MRA answers. IBTA Vol 1, tables 107 and 108 (2 bits).
#pragma once

#include "base/types.h"

namespace verbena::cm {

enum class Answered : u8 {
  kREQ = 0,
  kREP = 1,
  kOther = 2,
  kReserved = 3
};  // kOther: LAP in an MRA

}  // namespace verbena::cm
