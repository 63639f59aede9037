// MRObject: a memory region.
#pragma once

#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {

struct MRObject : ibv_mr {
  static MRObject& of(ibv_mr* mr) { return *static_cast<MRObject*>(mr); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }
  [[nodiscard]] bool is_on_demand() const { return (access & IBV_ACCESS_ON_DEMAND) != 0; }

  Use pd_use, dm_use, dmah_use;
  std::span<const u8> memory{};  // in this process; empty for a null region
  unsigned access = 0;           // as asked for
  std::shared_ptr<SharedRegion> shared;
  u64 exporter = 0;  // the process that it was imported from; 0: made here
};

// Out of the device and deleted; kBusy and unchanged while a window is bound to it.
[[nodiscard]] Status destroy(MRObject& mr);
// Deleted; the region stays if another object is the same one.
void forget(MRObject& mr);

// Returns 0, or the errno that a registration with these rights gives.
[[nodiscard]] int check_access(unsigned access);
// Whether the process can register this memory so: all of it is mapped, with the rights that the
// kernel asks for when it pins memory. An on-demand region may lack both; each access then shows.
[[nodiscard]] bool can_register(std::span<const u8> memory, unsigned access);
// Returns what peers of this host can map of memory that is about to be registered with `access`.
[[nodiscard]] std::optional<host::CommonMemory> common_memory(ContextObject& owner,
                                                              std::span<const u8> memory,
                                                              unsigned access);
void set_keys(MRObject& mr, const MRKeys& keys);

}  // namespace verbena::abi
