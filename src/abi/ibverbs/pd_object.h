// PDObject: a protection domain, or a parent domain: another name of one, with a thread domain and
// allocators. Address handles live in it too, but the core knows none of them.
#pragma once

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/shared_object.h"
#include "abi/ibverbs/use_count.h"

namespace verbena::abi {

struct AHObject;

struct PDObject : ibv_pd {
  static PDObject& of(ibv_pd* pd) { return *static_cast<PDObject*>(pd); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }
  [[nodiscard]] PDId id() const { return domain->id; }

  ProtectionDomain* domain = nullptr;
  std::shared_ptr<SharedDomain> shared;  // not of a parent domain
  u64 exporter = 0;                      // the process that it was imported from; 0: made here
  LiveSet<AHObject> address_handles{"AH"};
  UseCount users;  // what was made in it, but address handles

  // of a parent domain
  bool is_parent = false;
  Use extended, thread_domain;
  decltype(ibv_parent_domain_init_attr::alloc) allocate = nullptr;
  decltype(ibv_parent_domain_init_attr::free) release = nullptr;
  void* allocator_context = nullptr;
};

struct TDObject : ibv_td {
  static TDObject& of(ibv_td* td) { return *static_cast<TDObject*>(td); }

  UseCount users;
};

// Out of the device and deleted, with its address handles; kBusy and unchanged while something else
// is left in it.
[[nodiscard]] Status destroy(PDObject& pd);
// Deleted with its address handles; the domain stays if another object is the same one.
void forget(PDObject& pd);
[[nodiscard]] Status destroy(TDObject& td);

}  // namespace verbena::abi
