// Multicast groups. ibv_attach_mcast(3). An MGID is the group's IP address, an IPv4 one in the form
// ::ffff:a.b.c.d; RoCE has no LIDs.
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/translate.h"

using namespace verbena::abi;

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) try {
  if (gid == nullptr) return refuse(EINVAL);
  const QPObject& self = QPObject::of(qp);
  if (self.owner().is_iwarp()) return refuse(EOPNOTSUPP);
  return refuse(self.owner().adapter->attach_multicast(self.queue, to_gid(*gid)));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) try {
  if (gid == nullptr) return refuse(EINVAL);
  const QPObject& self = QPObject::of(qp);
  if (self.owner().is_iwarp()) return refuse(EOPNOTSUPP);
  return refuse(self.owner().adapter->detach_multicast(self.queue, to_gid(*gid)));
} catch (...) {
  return refuse(errno_of_exception());
}
