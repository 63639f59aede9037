// Protection domains. ibv_alloc_pd(3). Parent domains: parent_domain.cc.
#include "abi/ibverbs/ah_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/pd_object.h"
#include "abi/ibverbs/undo.h"

namespace verbena::abi {

Status destroy(PDObject& pd) {
  if (pd.users.in_use()) return Status::kBusy;
  if (!pd.is_parent)
    if (const Status status = pd.shared->destroy(); status != Status::kOk) return status;
  forget(pd);
  return Status::kOk;
}

void forget(PDObject& pd) {
  ContextObject& owner = pd.owner();
  (pd.is_parent ? owner.parent_domains : owner.pds).erase(&pd);
  while (AHObject* ah = pd.address_handles.any()) destroy(*ah);
  delete &pd;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_pd* ibv_alloc_pd(ibv_context* context) try {
  ContextObject& owner = ContextObject::of(context);
  auto pd = make<PDObject>();
  if (pd == nullptr) return fail(ENOMEM);
  const Result<ProtectionDomain*> domain = owner.enter()->alloc_pd();
  if (!domain) return fail(domain.error());
  Undo allocated([&] { static_cast<void>(owner.enter()->dealloc_pd(*domain)); });
  pd->context = context;
  pd->handle = (*domain)->id.value;
  pd->domain = *domain;
  pd->shared = std::make_shared<SharedDomain>(owner.adapter, **domain);
  allocated.keep();  // `shared` deallocates it
  owner.pds.insert(pd.get());
  return pd.release();
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_dealloc_pd(ibv_pd* pd) try {
  PDObject& self = PDObject::of(pd);
  if (self.address_handles.size() != 0) return refuse(EBUSY);
  return refuse(destroy(self));
} catch (...) {
  return refuse(errno_of_exception());
}
