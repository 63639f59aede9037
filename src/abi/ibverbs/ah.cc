// Address handles. ibv_create_ah(3).
#include "abi/ibverbs/ah_object.h"

#include "abi/ibverbs/address.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/refusals.h"

namespace verbena::abi {

void destroy(AHObject& ah) {
  PDObject::of(ah.pd).address_handles.erase(&ah);
  delete &ah;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) try {
  if (attr == nullptr) return fail(EINVAL);
  PDObject& domain = PDObject::of(pd);
  if (domain.owner().is_iwarp()) return fail(EOPNOTSUPP);
  const auto path = to_address_vector(*attr, domain.owner().config());
  if (!path) {
    explain_refused_path("ibv_create_ah", *attr, domain.owner().config());
    return fail(EINVAL);
  }
  if (domain.address_handles.size() >= domain.owner().config().limits.max_ah) return fail(ENOMEM);
  auto ah = make<AHObject>();
  if (ah == nullptr) return fail(ENOMEM);
  ah->context = pd->context;
  ah->pd = pd;
  ah->path = *path;
  domain.address_handles.insert(ah.get());
  return ah.release();
} catch (...) {
  return fail(errno_of_exception());
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port_num) try {
  ibv_ah_attr attr{};
  if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) return nullptr;
  return ibv_create_ah(pd, &attr);
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_destroy_ah(ibv_ah* ah) try {
  destroy(AHObject::of(ah));
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

// Packets are addressed below the verbs: no program sees a MAC address of this device.
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t*, uint16_t*) try {
  return -refuse(EOPNOTSUPP);
} catch (...) {
  return -refuse(errno_of_exception());
}
