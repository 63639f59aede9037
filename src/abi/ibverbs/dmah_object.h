// DMAHObject: a DMA handle: how a card should reach memory over PCIe.
#pragma once

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/use_count.h"

namespace verbena::abi {

struct DMAHObject : ibv_dmah {
  static DMAHObject& of(ibv_dmah* dmah) { return *static_cast<DMAHObject*>(dmah); }

  UseCount users;  // regions registered with it
};

// Deleted; kBusy and unchanged while a region was registered with it.
[[nodiscard]] Status destroy(DMAHObject& dmah);

}  // namespace verbena::abi
