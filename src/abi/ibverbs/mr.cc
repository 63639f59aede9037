// Memory regions. ibv_reg_mr(3), ibv_rereg_mr(3), ibv_advise_mr(3).
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/translate.h"
#include "host/mapped_memory.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace verbena::abi {
namespace {

// What a registration may ask for and gets, by the nature of software: on demand, without huge
// pages.
constexpr unsigned kHints = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

int check_access(unsigned access) {
  if ((access & (kAccessFlushGlobal | kAccessFlushPersistent)) != 0) return EOPNOTSUPP;
  return (access & ~(kAllAccess | kHints)) == 0 ? 0 : EINVAL;
}

// "The whole address space": how implicit on-demand paging is asked for.
bool is_whole_process(const void* address, std::size_t length, unsigned access) {
  return address == nullptr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND) != 0;
}

// On-demand regions may have pages that are not mapped yet.
bool is_there(const void* address, std::size_t length, unsigned access) {
  if (is_whole_process(address, length, access) || length == 0) return true;
  if (address == nullptr) return false;
  return (access & IBV_ACCESS_ON_DEMAND) != 0 || host::is_mapped(address, length);
}

Result<MRKeys> register_region(PDObject& pd, void* address, std::size_t length, u64 iova,
                               unsigned access) {
  auto session = pd.owner().enter();
  if (is_whole_process(address, length, access))
    return session->memory().register_whole_process(pd.id(), to_access(access));
  return session->memory().register_mr(pd.id(), static_cast<u8*>(address), length, iova,
                                       to_access(access));
}

void set_keys(MRObject& mr, const MRKeys& keys) {
  mr.handle = keys.l_key.value;
  mr.lkey = keys.l_key.value;
  mr.rkey = keys.r_key.value;
}

// The two ways a re-registration fails: the region is as it was, or its key is dead.
int refuse_rereg(Status status) {
  errno = to_errno(status);
  return status == Status::kBusy ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
}
int refuse_rereg_input() {
  errno = EINVAL;
  return IBV_REREG_MR_ERR_INPUT;
}

bool legal_rereg(int flags, const ibv_pd* pd, const void* address, std::size_t length,
                 unsigned access) {
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return false;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (address == nullptr || length == 0))
    return false;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 && check_access(access) != 0) return false;
  return (flags & IBV_REREG_MR_CHANGE_PD) == 0 || pd != nullptr;
}

constexpr int to_advise_errno(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::kNone: return 0;
    case MemoryFault::kBadKey: return ENOENT;
    case MemoryFault::kBounds: return EFAULT;
    case MemoryFault::kAccess: return EPERM;
    case MemoryFault::kGone: return EFAULT;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

// A re-registration that failed may have taken the key already.
Status destroy(MRObject& mr) {
  ContextObject& owner = mr.owner();
  const Status status = owner.enter()->memory().deregister_mr(LKey{mr.handle});
  if (status != Status::kOk && status != Status::kNotFound) return status;
  owner.mrs.erase(&mr);
  delete &mr;
  return Status::kOk;
}

// Pages come when they are touched, so advice to fetch them is checked and else ignored.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* sg_list,
              uint32_t num_sge) {
  if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return refuse(EOPNOTSUPP);
  if ((flags & ~static_cast<u32>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0) return refuse(EINVAL);
  const PDObject& domain = PDObject::of(pd);
  const Access need =
      advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? Access::kLocalWrite : Access::kLocalRead;
  int error = 0;
  {
    auto session = domain.owner().enter();
    for (u32 i = 0; i < num_sge && error == 0; ++i)
      error = to_advise_errno(
          session->memory()
              .local(domain.id(), LKey{sg_list[i].lkey}, sg_list[i].addr, sg_list[i].length, need)
              .fault);
  }
  return refuse(error);
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, u64 iova, unsigned access) {
  if (const int error = check_access(access); error != 0) return fail(error);
  if (!is_there(addr, length, access)) return fail(EFAULT);
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  const Result<MRKeys> keys = register_region(PDObject::of(pd), addr, length, iova, access);
  if (!keys) return fail(keys.error());
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  set_keys(*mr, *keys);
  mr->owner().mrs.insert(mr.get());
  return mr.release();
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, u64 iova, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova(pd, addr, length, reinterpret_cast<u64>(addr), access);
}

ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  if ((attr->comp_mask & ~kAllMRInit) != 0) return fail(EINVAL);
  if ((attr->comp_mask & ~(kMRInitIOVA | kMRInitAddr)) != 0) return fail(EOPNOTSUPP);
  if ((attr->comp_mask & kMRInitAddr) == 0) return fail(EINVAL);
  const u64 iova =
      (attr->comp_mask & kMRInitIOVA) != 0 ? attr->iova : reinterpret_cast<u64>(attr->addr);
  return ibv_reg_mr_iova(pd, attr->addr, attr->length, iova, attr->access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, u64, std::size_t, u64, int, int) { return fail(EOPNOTSUPP); }

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  if (!legal_rereg(flags, pd, addr, length, static_cast<unsigned>(access)))
    return refuse_rereg_input();
  MRObject& self = MRObject::of(mr);
  const PDId new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? PDObject::of(pd).id() : PDId{};
  const AccessFlags new_access = to_access(static_cast<unsigned>(access));
  const ProtectionTable::Rereg change{
      .pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? &new_pd : nullptr,
      .access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? &new_access : nullptr,
      .translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0,
      .base = static_cast<u8*>(addr),
      .length = length,
      .iova = reinterpret_cast<u64>(addr)};
  const Result<MRKeys> keys =
      self.owner().enter()->memory().reregister_mr(LKey{mr->handle}, change);
  if (!keys) return refuse_rereg(keys.error());
  set_keys(self, *keys);
  if (change.pd != nullptr) mr->pd = pd;
  if (change.translation) {
    mr->addr = addr;
    mr->length = length;
  }
  return 0;
}

int ibv_dereg_mr(ibv_mr* mr) { return refuse(destroy(MRObject::of(mr))); }
