// Memory windows. ibv_alloc_mw(3), ibv_bind_mw(3).
//
// A bind is posted: `rkey` in ibv_mw is the window's key once the bind has been carried out, and
// the application puts the old one back when it failed. So the low 8 bits there are not certain;
// `handle` keeps the first key, whose index names the window for good.
#include "abi/ibverbs/mw_object.h"

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/undo.h"

namespace verbena::abi {
namespace {

constexpr u32 kVariants = 1u << 8;  // of one key index

Status deallocate(ProtectionTable& table, u32 key) {
  for (u32 tried = 0; tried < kVariants; ++tried, key = ibv_inc_rkey(key)) {
    const Status status = table.deallocate_mw(RKey{key});
    if (status != Status::kNotFound) return status;
  }
  return Status::kNotFound;
}

}  // namespace

Status destroy(MWObject& mw) {
  ContextObject& owner = mw.owner();
  if (const Status status = deallocate(owner.enter()->memory(), mw.handle); status != Status::kOk)
    return status;
  owner.mws.erase(&mw);
  delete &mw;
  return Status::kOk;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return fail(EINVAL);
  auto mw = make<MWObject>();
  if (mw == nullptr) return fail(ENOMEM);
  PDObject& domain = PDObject::of(pd);
  const Result<RKey> key = domain.owner().enter()->memory().allocate_mw(
      domain.id(), type == IBV_MW_TYPE_1 ? MWType::k1 : MWType::k2);
  if (!key) return fail(key.error());
  Undo allocated([&] { static_cast<void>(domain.owner().enter()->memory().deallocate_mw(*key)); });
  mw->context = pd->context;
  mw->pd = pd;
  mw->pd_use = Use(domain.users);
  mw->rkey = key->value;
  mw->handle = key->value;
  mw->type = type;
  mw->owner().mws.insert(mw.get());
  allocated.keep();
  return mw.release();
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad_wr = nullptr;
  return post_send(qp, &wr, &bad_wr);
}

int dealloc_mw(ibv_mw* mw) {
  MWObject& self = MWObject::of(mw);
  self.owner().adapter->receive_arrived();  // which may use the window
  return refuse(destroy(self));
}

}  // namespace verbena::abi
