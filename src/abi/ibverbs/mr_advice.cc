// Advice about memory regions. ibv_advise_mr(3).
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/pd_object.h"
#include "host/os/mapped_memory.h"

namespace verbena::abi {
namespace {

constexpr int to_advise_errno(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::kNone:
    case MemoryFault::kLater: return 0;
    case MemoryFault::kBadKey: return ENOENT;
    case MemoryFault::kBounds: return EFAULT;
    case MemoryFault::kAccess: return EPERM;
    case MemoryFault::kGone:
    case MemoryFault::kProtected: return EFAULT;
  }
  CHECK_UNREACHABLE();
}

// Returns 0, or why the advice cannot be followed. Prefetching brings pages in. Memory that is to
// be prefetched without faults is there already, or need not be.
int follow(const PDObject& pd, ibv_advise_mr_advice advice, const ibv_sge& range) {
  const bool to_write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const Resolved at =
      pd.owner().enter()->memory().local(pd.id(), LKey{range.lkey}, range.addr, range.length,
                                         to_write ? Access::kLocalWrite : Access::kLocalRead);
  if (!at || !is_here(at.data)) return to_advise_errno(at.fault);
  if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
    return host::is_mapped(at.data, range.length) ? 0 : EFAULT;
  const host::PageIn how = to_write ? host::PageIn::kToWrite : host::PageIn::kToRead;
  return host::page_in(at.data, range.length, how) ? 0 : EFAULT;
}

}  // namespace

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* sg_list,
              uint32_t num_sge) {
  if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return refuse(EOPNOTSUPP);
  if ((flags & ~static_cast<u32>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0) return refuse(EINVAL);
  if (sg_list == nullptr || num_sge == 0) return refuse(EINVAL);
  for (u32 i = 0; i < num_sge; ++i)
    if (const int error = follow(PDObject::of(pd), advice, sg_list[i]); error != 0)
      return refuse(error);
  return 0;
}

}  // namespace verbena::abi
