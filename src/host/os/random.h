// The kernel's random source.
#pragma once

#include <sys/random.h>

#include "base/types.h"

namespace verbena::host {

inline u64 random_u64() {
  u64 value = 0;
  while (::getrandom(&value, sizeof(value), 0) !=
         sizeof(value)) {  // a signal, before the boot ends
  }
  return value;
}

}  // namespace verbena::host
