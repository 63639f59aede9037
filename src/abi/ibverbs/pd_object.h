// PDObject: a protection domain. Address handles live in one too, but the core knows none of them.
#pragma once

#include "abi/ibverbs/context_object.h"

namespace verbena::abi {

struct AHObject;

struct PDObject : ibv_pd {
  static PDObject& of(ibv_pd* pd) { return *static_cast<PDObject*>(pd); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }
  [[nodiscard]] PDId id() const { return domain->id; }

  ProtectionDomain* domain = nullptr;
  LiveSet<AHObject> address_handles;
};

// Out of the device and deleted, with its address handles; kBusy and unchanged while something else
// is left in it.
[[nodiscard]] Status destroy(PDObject& pd);

}  // namespace verbena::abi
