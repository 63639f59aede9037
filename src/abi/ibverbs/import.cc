// Objects of another context. ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3),
// ibv_import_dm(3).
//
// A device can be imported wherever its cmd_fd arrives, and what was made in it too. A kernel
// shares a card's tables between processes; each of ours has a device of its own, with its own
// domains, keys and memory. So what another process has made is imported as an object of our device
// that stands for it: a domain of our own, and a region under the same key whose memory is the
// other's (memory/imported_memory.h). It works as long as the original is there; destroying it
// leaves the original alone. Not from other processes: device memory (EOPNOTSUPP), null regions
// (ENOENT).
#include <algorithm>

#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/command_file.h"
#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/newer_verbs.h"
#include "host/local/imported_region.h"

namespace verbena::abi {
namespace {

// Where a context's objects come from.
struct Origin {
  u64 exporter = 0;                              // as in PDObject and MRObject
  std::shared_ptr<host::ProcessMemory> process;  // nullptr for this one
};

// Returns nullopt and sets errno if nothing can be imported to the context.
std::optional<Origin> origin_of(const ContextObject& context) {
  const auto file = CommandFile::read(context.command_file.get());
  if (file && file->of_this_process) return Origin{};
  errno = EOPNOTSUPP;
  if (!file || !file->place) return std::nullopt;
  auto process = context.adapter->exporter_at(*file->place);
  if (process) return Origin{file->place->segment.nonce, std::move(*process)};
  errno = process.error().error;
  return std::nullopt;
}

// Calls take(object) for the first with that handle, of that kind and exporter, that some context
// of this process has on the same device. Returns false if there is none.
template <typename T, typename Matches, typename Take>
bool with_known(const ContextObject& context, LiveSet<T> ContextObject::*kind, Matches matches,
                Take take) {
  bool found = false;
  open_contexts().visit_until([&](const ContextObject& other) {
    if (other.adapter != context.adapter) return false;
    (other.*kind).visit_until([&](const T& object) {
      found = matches(object);
      if (found) take(object);
      return found;
    });
    return found;
  });
  return found;
}

bool find_known(const ContextObject& context, u32 handle, PDObject& pd) {
  return with_known(
      context, &ContextObject::pds,
      [&](const PDObject& from) { return from.handle == handle && from.exporter == pd.exporter; },
      [&pd](const PDObject& from) {
        pd.domain = from.domain;
        pd.shared = from.shared;
      });
}

bool find_known(const ContextObject& context, u32 handle, MRObject& mr) {
  return with_known(
      context, &ContextObject::mrs,
      [&](const MRObject& from) { return from.handle == handle && from.exporter == mr.exporter; },
      [&mr](const MRObject& from) {
        mr.length = from.length;
        mr.lkey = from.lkey;
        mr.rkey = from.rkey;
        mr.memory = from.memory;
        mr.access = from.access;
        mr.shared = from.shared;
      });
}

// Returns 0, or why the process does not export such a domain.
int take_over(ContextObject& context, const Origin& origin, u32 handle, PDObject& pd) {
  if (origin.process == nullptr || !origin.process->exports(PDId{handle})) return ENOENT;
  const Result<ProtectionDomain*> domain = context.enter()->alloc_pd();
  if (!domain) return to_errno(domain.error());
  pd.domain = *domain;
  pd.shared = std::make_shared<SharedDomain>(context.adapter, **domain);
  return 0;
}

// The same of a region. EINVAL: it is of another domain than `pd`.
int take_over(ContextObject& context, const Origin& origin, u32 handle, const PDObject& pd,
              MRObject& mr) {
  if (origin.process == nullptr) return ENOENT;
  const std::optional<PublishedKey> region = origin.process->exported(handle);
  if (!region) return ENOENT;
  if (pd.exporter != origin.exporter || region->pd.value != pd.handle) return EINVAL;
  const u64 length = std::min(region->length, FarRegions::kMaxLength);
  const Result<MRKeys> keys = context.enter()->memory().import_mr(
      pd.id(), std::make_shared<host::ImportedRegion>(origin.process, *region), length,
      region->start, region->access, LKey{region->key});
  if (!keys) return to_errno(keys.error());
  mr.length = length;
  mr.lkey = keys->l_key.value;
  mr.rkey = keys->r_key.value;
  mr.shared =
      std::make_shared<SharedRegion>(context.adapter, keys->l_key, host::Mapping(), nullptr);
  checks::registered(mr, nullptr, region->start, 0);
  return 0;
}

}  // namespace
}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

// The descriptor belongs to the context from now on.
ibv_context* ibv_import_device(int cmd_fd) try {
  const auto file = CommandFile::read(cmd_fd);
  if (!file) return fail(EINVAL);
  auto addresses = host::choose_local_addresses(file->choice);
  if (!addresses) return fail(addresses.error().error);
  host::LocalAddress address = addresses->front();
  address.device_name = file->device_name;
  ContextObject* context = open_context(device_on(address), host::Descriptor(cmd_fd));
  return context == nullptr ? nullptr : &context->context;
} catch (...) {
  return fail(errno_of_exception());
}

ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) try {
  ContextObject& importer = ContextObject::of(context);
  const std::optional<Origin> origin = origin_of(importer);
  if (!origin) return fail(errno);
  auto pd = make<PDObject>();
  if (pd == nullptr) return fail(ENOMEM);
  pd->exporter = origin->exporter;
  if (!find_known(importer, handle, *pd))
    if (const int error = take_over(importer, *origin, handle, *pd); error != 0) return fail(error);
  pd->context = context;
  pd->handle = handle;
  importer.pds.insert(pd.get());
  return pd.release();
} catch (...) {
  return fail(errno_of_exception());
}

void ibv_unimport_pd(ibv_pd* pd) try { forget(PDObject::of(pd)); } catch (...) {
  refuse(errno_of_exception());
}

ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) try {
  ContextObject& importer = ContextObject::of(pd->context);
  const PDObject& domain = PDObject::of(pd);
  const std::optional<Origin> origin = origin_of(importer);
  if (!origin) return fail(errno);
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  mr->context = pd->context;
  mr->pd = pd;
  mr->handle = handle;
  mr->exporter = origin->exporter;
  if (!find_known(importer, handle, *mr))
    if (const int error = take_over(importer, *origin, handle, domain, *mr); error != 0)
      return fail(error);
  mr->pd_use = Use(PDObject::of(pd).users);
  importer.mrs.insert(mr.get());
  return mr.release();
} catch (...) {
  return fail(errno_of_exception());
}

void ibv_unimport_mr(ibv_mr* mr) try { forget(MRObject::of(mr)); } catch (...) {
  refuse(errno_of_exception());
}

ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) try {
  ContextObject& importer = ContextObject::of(context);
  const std::optional<Origin> origin = origin_of(importer);
  if (!origin) return fail(errno);
  if (origin->process != nullptr) return fail(EOPNOTSUPP);
  std::shared_ptr<host::Mapping> memory;
  const bool found = with_known(
      importer, &ContextObject::dms, [=](const DMObject& from) { return from.handle == handle; },
      [&memory](const DMObject& from) { memory = from.memory; });
  if (!found) return fail(ENOENT);
  DMObject* dm = import_dm(importer, std::move(memory), handle);
  return dm == nullptr ? fail(ENOMEM) : dm;
} catch (...) {
  return fail(errno_of_exception());
}

void ibv_unimport_dm(ibv_dm* dm) try { static_cast<void>(ibv_free_dm(dm)); } catch (...) {
  refuse(errno_of_exception());
}
