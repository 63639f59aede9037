// MWObject: a memory window.
#pragma once

#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {

struct MWObject : ibv_mw {
  static MWObject& of(ibv_mw* mw) { return *static_cast<MWObject*>(mw); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  Use pd_use;
};

// Out of the device and deleted, bound or not.
[[nodiscard]] Status destroy(MWObject& mw);

}  // namespace verbena::abi
