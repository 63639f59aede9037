// MRObject: a memory region.
#pragma once

#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {

struct MRObject : ibv_mr {
  static MRObject& of(ibv_mr* mr) { return *static_cast<MRObject*>(mr); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }
};

// Out of the device and deleted; kBusy and unchanged while a window is bound to it.
[[nodiscard]] Status destroy(MRObject& mr);

}  // namespace verbena::abi
