// Memory regions: registration. ibv_reg_mr(3), ibv_reg_dmabuf_mr(3), ibv_alloc_null_mr(3).
// Re-registration: mr_rereg.cc. Advice: mr_advice.cc.
#include <strings.h>

#include "abi/ibverbs/buf_object.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/dmah_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/gpu_memory.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/refusals.h"
#include "abi/ibverbs/translate.h"
#include "abi/ibverbs/undo.h"
#include "host/cuda/region.h"
#include "host/os/mapped_memory.h"
#include "host/settings/hardening_settings.h"
#include "memory/touch.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace verbena::abi {
namespace {

// The hints that a registration may give. Software fulfils them by its nature: it works on demand,
// and without huge pages.
constexpr unsigned kHints = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

// "The whole address space": how implicit on-demand paging is asked for.
bool is_whole_process(const void* address, std::size_t length, unsigned access) {
  return address == nullptr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND) != 0;
}

// The kernel's rule: a window may come to give the right to write, too.
host::PageRight right_needed_for(unsigned access) {
  constexpr unsigned kWrites = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  return (access & kWrites) != 0 ? host::PageRight::kWrite : host::PageRight::kRead;
}

// Registration: the properties of a region to be made.
struct Registration {
  ibv_pd* pd = nullptr;
  u8* memory = nullptr;  // in this process
  std::size_t length = 0;
  u64 iova = 0;
  unsigned access = 0;
  void* verbs_address = nullptr;  // what ibv_mr::addr says
};

// VERBENA_HARDEN=zero: the next user of the memory must not see data of a peer or of this program.
// Memory that is gone already, or read-only, is left alone. A whole process is not zeroed.
void zero_if_asked(const MRObject& mr) {
  static const bool is_asked = [] {
    const auto settings = host::hardening_from_environment();
    return settings && settings->zeroes_memory;
  }();
  if (!is_asked || (mr.access & IBV_ACCESS_LOCAL_WRITE) == 0 || mr.memory.size() == SIZE_MAX)
    return;
  (void)touch([&] { explicit_bzero(const_cast<u8*>(mr.memory.data()), mr.memory.size()); });
}

Result<MRKeys> register_region(const Registration& asked,
                               const std::optional<host::CommonMemory>& common) {
  const PDObject& pd = PDObject::of(asked.pd);
  auto session = pd.owner().enter();
  if (session.faults() != nullptr && session.faults()->refuses_registration(session.real_now()))
    return failure(Status::kNoMemory);
  if (is_whole_process(asked.memory, asked.length, asked.access))
    return session->memory().register_whole_process(pd.id(), to_access(asked.access));
  const Result<MRKeys> keys = session->memory().register_mr(pd.id(), asked.memory, asked.length,
                                                            asked.iova, to_access(asked.access));
  if (keys && common) session->memory().share(keys->l_key, common->span);
  return keys;
}

MRObject* finish(std::unique_ptr<MRObject> mr, const Registration& made, const MRKeys& keys,
                 host::Mapping memory = {},
                 std::shared_ptr<const host::SharedFile> file = nullptr) {
  mr->context = made.pd->context;
  mr->pd = made.pd;
  mr->addr = made.verbs_address;
  mr->length = made.length;
  mr->pd_use = Use(PDObject::of(made.pd).users);
  if (made.memory != nullptr) mr->memory = {made.memory, made.length};
  mr->access = made.access;
  set_keys(*mr, keys);
  Undo registered(
      [&] { static_cast<void>(mr->owner().enter()->memory().deregister_mr(keys.l_key)); });
  mr->shared = std::make_shared<SharedRegion>(mr->owner().adapter, keys.l_key, std::move(memory),
                                              std::move(file));
  registered.keep();  // `shared` deregisters it
  checks::registered(*mr, made.memory, made.iova, made.access);
  mr->owner().mrs.insert(mr.get());
  return mr.release();
}

// `mr` holds what the region needs beyond its domain. nullptr and errno on failure.
MRObject* create(std::unique_ptr<MRObject> mr, const Registration& asked,
                 host::Mapping memory = {}) {
  std::optional<host::CommonMemory> common = common_memory(
      ContextObject::of(asked.pd->context), {asked.memory, asked.length}, asked.access);
  const Result<MRKeys> keys = register_region(asked, common);
  if (!keys) return fail(keys.error());
  return finish(std::move(mr), asked, *keys, std::move(memory),
                common ? std::move(common->file) : nullptr);
}

MRObject* refuse_registration(int error, const std::string& why) {
  explain_refused_registration(why);
  return fail(error);
}

// Memory that the CPU cannot touch: a GPU's, or none at all. `at`: where the driver has found it.
MRObject* create_of_gpu_memory(std::unique_ptr<MRObject> mr, Registration asked, const void* at,
                               const host::cuda::FoundRegion& found, int error_of_none) {
  if (!found) return fail(error_of_none);
  if (!*found) return refuse_registration(found->error().error, found->error().message);
  const std::shared_ptr<host::cuda::CudaRegion>& region = **found;
  const PDObject& pd = PDObject::of(asked.pd);
  if (const int error = prepare_staging(pd.owner(), *region); error != 0) return fail(error);
  asked.memory = nullptr;  // the checker and the advice would touch it
  const Result<MRKeys> keys = pd.owner().enter()->memory().register_far(
      pd.id(), region, skew_of(at), asked.length, asked.iova, to_access(asked.access));
  if (!keys) return fail(keys.error());
  MRObject* const made = finish(std::move(mr), asked, *keys);
  made->shared->set_far(region);
  return made;
}

// A range of the process's own memory, or of a GPU's.
MRObject* create_of_memory(std::unique_ptr<MRObject> mr, const Registration& asked) {
  if (mr == nullptr) return fail(ENOMEM);
  if (const int error = check_access(asked.access); error != 0) return fail(error);
  if (is_whole_process(asked.memory, asked.length, asked.access))
    return create(std::move(mr), asked);
  const bool is_ours = can_register({asked.memory, asked.length}, asked.access);
  if (!is_perhaps_gpu_memory(asked.memory, asked.length))
    return is_ours ? create(std::move(mr), asked) : fail(EFAULT);
  const host::cuda::FoundRegion found = host::cuda::find_region(asked.memory, asked.length);
  return found || !is_ours ? create_of_gpu_memory(std::move(mr), asked, asked.memory, found, EFAULT)
                           : create(std::move(mr), asked);
}

// A range of a file: a dma-buf, a memfd, or whatever can be mapped. The kernel's rule: the iova has
// the offset's place in its page.
MRObject* create_of_file(std::unique_ptr<MRObject> mr, Registration asked, int fd, u64 offset) {
  constexpr u64 kPageMask = 0xfff;
  constexpr unsigned kOffered = (kAllAccess & ~unsigned{IBV_ACCESS_ZERO_BASED}) |
                                IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
  if (mr == nullptr) return fail(ENOMEM);
  if ((asked.access & ~kOffered) != 0 || ((asked.iova ^ offset) & kPageMask) != 0)
    return fail(EINVAL);
  host::Expected<host::Mapping> memory = host::Mapping::of_file(
      fd, offset, asked.length,
      (asked.access & IBV_ACCESS_LOCAL_WRITE) != 0 ? host::MapAccess::kReadWrite
                                                   : host::MapAccess::kRead);
  // The dma-buf of a GPU's memory is seldom mapped. Programs give the GPU's own address as iova.
  if (!memory) {
    const void* const at = reinterpret_cast<const void*>(asked.iova);
    const host::cuda::FoundRegion found = host::cuda::find_region(at, asked.length);
    if (!found && asked.length != 0)  // without a length programs ask whether there is the call
      explain_refused_registration("the descriptor cannot be mapped (" + memory.error().message +
                                   "), and its iova names no GPU memory");
    return create_of_gpu_memory(std::move(mr), asked, at, found, memory.error().error);
  }
  asked.memory = memory->data();
  asked.verbs_address = reinterpret_cast<void*>(offset);
  return create(std::move(mr), asked, std::move(*memory));
}

// --- registration by attributes

bool has(const ibv_mr_init_attr& attr, u64 fields) { return (attr.comp_mask & fields) == fields; }
bool has_any(const ibv_mr_init_attr& attr, u64 fields) { return (attr.comp_mask & fields) != 0; }

// A DMA handle is for memory that is pinned.
bool legal_with_handle(const ibv_pd* pd, const ibv_mr_init_attr& attr) {
  return attr.dmah != nullptr && attr.dmah->context == pd->context &&
         (attr.access & IBV_ACCESS_ON_DEMAND) == 0;
}

// Memory is a buffer's, a file's or the process's own.
bool legal_attributes(const ibv_pd* pd, const ibv_mr_init_attr& attr) {
  constexpr u64 kFile = kMRInitFD | kMRInitFDOffset;
  if ((attr.comp_mask & ~kAllMRInit) != 0) return false;
  if (has(attr, kMRInitDMAH) && !legal_with_handle(pd, attr)) return false;
  if (has(attr, kMRInitBuf)) {
    if (attr.buf == nullptr || !has(attr, kMRInitAddr) || has_any(attr, kFile)) return false;
    const BufObject& buf = BufObject::of(attr.buf);
    return buf.pd == pd && buf.covers(attr.addr, attr.length);
  }
  if (has_any(attr, kFile)) return has(attr, kFile) && !has(attr, kMRInitAddr);
  return has(attr, kMRInitAddr);
}

}  // namespace

int check_access(unsigned access) {
  if ((access & kAccessFlushPersistent) != 0) return EOPNOTSUPP;
  return (access & ~(kAllAccess | kHints)) == 0 ? 0 : EINVAL;
}

bool can_register(std::span<const u8> memory, unsigned access) {
  if (memory.empty()) return true;
  if (memory.data() == nullptr) return false;
  return (access & IBV_ACCESS_ON_DEMAND) != 0 ||
         host::is_mapped(memory.data(), memory.size(), right_needed_for(access));
}

std::optional<host::CommonMemory> common_memory(ContextObject& owner, std::span<const u8> memory,
                                                unsigned access) {
  constexpr unsigned kRemote =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kRemote) == 0 || (access & IBV_ACCESS_ON_DEMAND) != 0) return std::nullopt;
  return owner.adapter->common_memory(memory);
}

void set_keys(MRObject& mr, const MRKeys& keys) {
  mr.handle = keys.l_key.value;
  mr.lkey = keys.l_key.value;
  mr.rkey = keys.r_key.value;
}

Status destroy(MRObject& mr) {
  const Status status = mr.shared->destroy();
  if (status == Status::kOk) forget(mr);
  return status;
}

void forget(MRObject& mr) {
  mr.owner().mrs.erase(&mr);
  delete &mr;
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  const PDObject& domain = PDObject::of(pd);
  if (domain.owner().is_iwarp()) return fail(EOPNOTSUPP);
  const Result<MRKeys> key = domain.owner().enter()->memory().register_null(domain.id());
  if (!key) return fail(key.error());
  return finish(std::move(mr), {.pd = pd, .length = SIZE_MAX}, {key->l_key, RKey{}});
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t dm_offset, size_t length, unsigned access) {
  DMObject& memory = DMObject::of(dm);
  constexpr unsigned kOffered = kAllAccess | IBV_ACCESS_OPTIONAL_RANGE;
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || (access & ~kOffered) != 0) return fail(EINVAL);
  if (pd->context != dm->context || !memory.covers(dm_offset, length) ||
      !is_whole_words(dm_offset, length))
    return fail(EINVAL);
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  mr->dm_use = Use(memory.users);
  return create(std::move(mr), {.pd = pd,
                                .memory = memory.memory->data() + dm_offset,
                                .length = length,
                                .iova = 0,
                                .access = access,
                                .verbs_address = nullptr});
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, u64 iova,
                         unsigned access) try {
  return create_of_memory(make<MRObject>(), {.pd = pd,
                                             .memory = static_cast<u8*>(addr),
                                             .length = length,
                                             .iova = iova,
                                             .access = access,
                                             .verbs_address = addr});
} catch (...) {
  return fail(errno_of_exception());
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, u64 iova, int access) try {
  return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
} catch (...) {
  return fail(errno_of_exception());
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) try {
  return ibv_reg_mr_iova(pd, addr, length, reinterpret_cast<u64>(addr), access);
} catch (...) {
  return fail(errno_of_exception());
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, u64 offset, std::size_t length, u64 iova, int fd,
                          int access) try {
  return create_of_file(make<MRObject>(),
                        {.pd = pd,
                         .memory = nullptr,
                         .length = length,
                         .iova = iova,
                         .access = static_cast<unsigned>(access),
                         .verbs_address = nullptr},
                        fd, offset);
} catch (...) {
  return fail(errno_of_exception());
}

ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) try {
  if (!legal_attributes(pd, *attr)) return fail(EINVAL);
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  if (has(*attr, kMRInitDMAH)) mr->dmah_use = Use(DMAHObject::of(attr->dmah).users);
  const bool of_file = has(*attr, kMRInitFD);
  const u64 start = of_file ? attr->fd_offset : reinterpret_cast<u64>(attr->addr);
  const Registration asked{.pd = pd,
                           .memory = of_file ? nullptr : static_cast<u8*>(attr->addr),
                           .length = attr->length,
                           .iova = has(*attr, kMRInitIOVA) ? attr->iova : start,
                           .access = static_cast<unsigned>(attr->access),
                           .verbs_address = attr->addr};
  return of_file ? create_of_file(std::move(mr), asked, attr->fd, attr->fd_offset)
                 : create_of_memory(std::move(mr), asked);
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_dereg_mr(ibv_mr* mr) try {
  MRObject& self = MRObject::of(mr);
  self.owner().adapter->receive_arrived();  // which may need the region, or acknowledge its use
  if (const Status status = self.shared->destroy(); status != Status::kOk) return refuse(status);
  zero_if_asked(self);
  checks::deregistered(self);
  forget(self);
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
