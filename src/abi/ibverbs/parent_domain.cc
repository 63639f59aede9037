// Thread domains and parent domains. ibv_alloc_td(3), ibv_alloc_parent_domain(3).
//
// A thread domain promises that its objects are used by one thread at a time; the adapter's lock
// costs such a thread next to nothing, so the promise changes nothing here.
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {
namespace {

constexpr u32 kOffered = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                         IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kParentDomainUnprotectedAlloc;

// Returns 0, or the errno.
int check(const ibv_context* context, const ibv_parent_domain_init_attr& attr) {
  if ((attr.comp_mask & ~kOffered) != 0) return EINVAL;
  if (attr.pd == nullptr || attr.pd->context != context) return EINVAL;
  if (attr.td != nullptr && attr.td->context != context) return EINVAL;
  const bool allocators = (attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  return allocators && (attr.alloc == nullptr || attr.free == nullptr) ? EINVAL : 0;
}

}  // namespace

Status destroy(TDObject& td) {
  if (td.users.in_use()) return Status::kBusy;
  ContextObject::of(td.context).tds.erase(&td);
  delete &td;
  return Status::kOk;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) return fail(EINVAL);
  auto td = make<TDObject>();
  if (td == nullptr) return fail(ENOMEM);
  td->context = context;
  ContextObject::of(context).tds.insert(td.get());
  return td.release();
}

int dealloc_td(ibv_td* td) { return refuse(destroy(TDObject::of(td))); }

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  if (const int error = check(context, *attr); error != 0) return fail(error);
  auto parent = make<PDObject>();
  if (parent == nullptr) return fail(ENOMEM);
  PDObject& extended = PDObject::of(attr->pd);
  parent->context = context;
  parent->handle = extended.handle;
  parent->domain = extended.domain;
  parent->exporter = extended.exporter;
  parent->is_parent = true;
  parent->extended = Use(extended.users);
  if (attr->td != nullptr) parent->thread_domain = Use(TDObject::of(attr->td).users);
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0) {
    parent->allocate = attr->alloc;
    parent->release = attr->free;
  }
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0)
    parent->allocator_context = attr->pd_context;
  parent->owner().parent_domains.insert(parent.get());
  return parent.release();
}

}  // namespace verbena::abi
