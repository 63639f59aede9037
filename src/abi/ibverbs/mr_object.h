// MRObject: a memory region.
#pragma once

#include "abi/ibverbs/pd_object.h"
#include "host/mapping.h"

namespace verbena::abi {

struct MRObject : ibv_mr {
  static MRObject& of(ibv_mr* mr) { return *static_cast<MRObject*>(mr); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  Use pd_use, dm_use, dmah_use;
  bool on_demand = false;
  host::Mapping memory;  // of a dma-buf
};

// Out of the device and deleted; kBusy and unchanged while a window is bound to it.
[[nodiscard]] Status destroy(MRObject& mr);

}  // namespace verbena::abi
