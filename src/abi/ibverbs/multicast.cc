// Multicast groups. ibv_attach_mcast(3). On RoCE an MGID is the group's IP address, an IPv4 one in
// the form ::ffff:a.b.c.d; on InfiniBand a group is known by its MLID.
#include "abi/ibverbs/address.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/translate.h"
#include "wire/ib/lid_address.h"

using namespace verbena;
using namespace verbena::abi;

namespace {

GID group_of(const QPObject& qp, const ibv_gid& gid, u16 lid) {
  return is_infiniband(qp.owner().config()) ? address_of_lid(lid) : to_gid(gid);
}

}  // namespace

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) try {
  if (gid == nullptr) return refuse(EINVAL);
  const QPObject& self = QPObject::of(qp);
  if (self.owner().is_iwarp()) return refuse(EOPNOTSUPP);
  return refuse(self.owner().adapter->attach_multicast(self.queue, group_of(self, *gid, lid)));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) try {
  if (gid == nullptr) return refuse(EINVAL);
  const QPObject& self = QPObject::of(qp);
  if (self.owner().is_iwarp()) return refuse(EOPNOTSUPP);
  return refuse(self.owner().adapter->detach_multicast(self.queue, group_of(self, *gid, lid)));
} catch (...) {
  return refuse(errno_of_exception());
}
