// RNR NAK timer: how long a requester waits after "receiver not ready". IBTA Vol 1, table 45.
// From code 4 on the steps double every second code: 4 * 2^k and 6 * 2^k hundredths of a ms.
#pragma once

#include <array>

#include "base/time.h"
#include "base/types.h"

namespace verbena {

inline constexpr u8 kRNRTimerCodes = 32;

// Only the low 5 bits of `code` count, as in the AETH syndrome.
constexpr Duration rnr_timer(u8 code) {
  constexpr std::array<i64, kRNRTimerCodes> kMicroseconds = {
      655'360, 10,     20,     30,      40,      60,      80,      120,     //
      160,     240,    320,    480,     640,     960,     1'280,   1'920,   //
      2'560,   3'840,  5'120,  7'680,   10'240,  15'360,  20'480,  30'720,  //
      40'960,  61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};
  return us(kMicroseconds[code & 0x1f]);
}

}  // namespace verbena
