// AHObject: an address handle: where UD sends go.
#pragma once

#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {

struct AHObject : ibv_ah {
  static AHObject& of(ibv_ah* ah) { return *static_cast<AHObject*>(ah); }

  AddressVector path;
};

void destroy(AHObject& ah);

}  // namespace verbena::abi
