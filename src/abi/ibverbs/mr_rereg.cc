// Re-registration of memory regions. ibv_rereg_mr(3).
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/gpu_memory.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/refusals.h"
#include "abi/ibverbs/translate.h"

namespace verbena::abi {
namespace {

// The two ways a re-registration fails: the region is as it was, or its key is dead.
int refuse_rereg(Status status) {
  errno = to_errno(status);
  const bool is_unchanged = status == Status::kBusy || status == Status::kNoMemory;
  return is_unchanged ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
}
int refuse_rereg_input(int error) {
  errno = error;
  return IBV_REREG_MR_ERR_INPUT;
}

bool legal_rereg(const MRObject& mr, int flags, const ibv_pd* pd, const void* address,
                 std::size_t length, unsigned access) {
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return false;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (address == nullptr || length == 0))
    return false;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 && check_access(access) != 0) return false;
  if ((flags & IBV_REREG_MR_CHANGE_PD) == 0) return true;
  return pd != nullptr && pd->context == mr.context;
}

// The memory and the access rights of the region after the change.
struct Wanted {
  std::span<const u8> memory;  // as the program names it
  unsigned access = 0;
  bool is_far = false;
  std::shared_ptr<host::cuda::CudaRegion> gpu = nullptr;  // of new memory
  [[nodiscard]] bool is_on_demand() const { return (access & IBV_ACCESS_ON_DEMAND) != 0; }
};

Wanted after(const MRObject& mr, int flags, void* address, std::size_t length, unsigned access) {
  Wanted wanted{.memory = mr.memory, .access = mr.access, .is_far = mr.shared->is_far()};
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    wanted.memory = {static_cast<const u8*>(address), length};
    wanted.is_far = false;
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) wanted.access = access;
  return wanted;
}

// Finds out whether new memory is a GPU's, and pins what copies need. Returns 0 or errno.
int look_for_gpu_memory(ContextObject& owner, Wanted& wanted) {
  const void* const address = wanted.memory.data();
  if (!is_perhaps_gpu_memory(address, wanted.memory.size())) return 0;
  const host::cuda::FoundRegion found = host::cuda::find_region(address, wanted.memory.size());
  if (!found) return 0;
  if (!*found) {
    explain_refused_registration(found->error().message);
    return found->error().error;
  }
  wanted.gpu = **found;
  wanted.is_far = true;
  return prepare_staging(owner, *wanted.gpu);
}

// Returns 0, or the errno of memory that cannot have the rights.
int check_memory(ContextObject& owner, int flags, Wanted& wanted) {
  constexpr int kPins = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0)
    if (const int error = look_for_gpu_memory(owner, wanted); error != 0) return error;
  if ((flags & kPins) == 0 || wanted.is_far) return 0;
  return can_register(wanted.memory, wanted.access) ? 0 : EFAULT;
}

// Returns common memory for new memory only. With other rights or another domain, peers copy what
// they have mapped before.
std::optional<host::CommonMemory> common_after(MRObject& mr, const ProtectionTable::Rereg& change,
                                               const Wanted& wanted) {
  if (!change.translation || wanted.is_far || wanted.is_on_demand()) return std::nullopt;
  return common_memory(mr.owner(), wanted.memory, IBV_ACCESS_REMOTE_READ);
}

Result<MRKeys> reregister(MRObject& mr, const ProtectionTable::Rereg& change,
                          const std::optional<host::CommonMemory>& common) {
  auto session = mr.owner().enter();
  const Result<MRKeys> keys = session->memory().reregister_mr(LKey{mr.handle}, change);
  if (keys && common) session->memory().share(keys->l_key, common->span);
  return keys;
}

}  // namespace
}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length,
                 int access) try {
  MRObject& self = MRObject::of(mr);
  if (self.exporter != 0) return refuse_rereg_input(EOPNOTSUPP);
  if (!legal_rereg(self, flags, pd, addr, length, static_cast<unsigned>(access)))
    return refuse_rereg_input(EINVAL);
  Wanted wanted = after(self, flags, addr, length, static_cast<unsigned>(access));
  if (const int error = check_memory(self.owner(), flags, wanted); error != 0)
    return refuse_rereg_input(error);
  const PDId new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? PDObject::of(pd).id() : PDId{};
  const AccessFlags new_access = to_access(static_cast<unsigned>(access));
  const ProtectionTable::Rereg change{
      .pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? &new_pd : nullptr,
      .access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? &new_access : nullptr,
      .translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0,
      .base = wanted.is_far ? nullptr : static_cast<u8*>(addr),
      .far = wanted.gpu,
      .skew = skew_of(addr),
      .length = length,
      .iova = reinterpret_cast<u64>(addr)};
  self.owner().adapter->receive_arrived();  // with the region as it is
  std::optional<host::CommonMemory> common = common_after(self, change, wanted);
  const Result<MRKeys> keys = reregister(self, change, common);
  if (!keys) return refuse_rereg(keys.error());
  const LKey old_key{mr->lkey};
  set_keys(self, *keys);
  self.shared->on_key_changed(keys->l_key);
  if (common) self.shared->on_file_changed(std::move(common->file));
  if (change.translation) self.shared->set_far(wanted.gpu);
  self.memory = wanted.is_far ? std::span<const u8>{} : wanted.memory;
  self.access = wanted.access;
  if (change.pd != nullptr) {
    mr->pd = pd;
    self.pd_use = Use(PDObject::of(pd).users);
  }
  if (change.translation) {
    mr->addr = addr;
    mr->length = length;
  }
  checks::reregistered(self, old_key, change);
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
