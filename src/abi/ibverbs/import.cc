// Objects of another context. ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3),
// ibv_import_dm(3).
//
// A device can be imported wherever its cmd_fd arrives. What was made in a context can be imported
// by contexts of the same process only: a kernel shares a card's tables between processes, but each
// of our processes has its own device, with its own memory and keys; it answers EOPNOTSUPP.
#include "abi/ibverbs/command_file.h"
#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/newer_verbs.h"

namespace verbena::abi {
namespace {

// 0, or why nothing can be imported to the context.
int check(const ContextObject& context) {
  const auto file = CommandFile::read(context.command_file.get());
  return file && file->of_this_process ? 0 : EOPNOTSUPP;
}

// Calls take(object) for the first of that kind and handle on the context's device. false: none.
template <typename T, typename Take>
bool with_exported(const ContextObject& context, LiveSet<T> ContextObject::*kind, u32 handle,
                   Take take) {
  bool found = false;
  open_contexts().visit_until([&](const ContextObject& other) {
    if (other.adapter != context.adapter) return false;
    (other.*kind).visit_until([&](const T& object) {
      found = object.handle == handle;
      if (found) take(object);
      return found;
    });
    return found;
  });
  return found;
}

}  // namespace
}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

// The descriptor belongs to the context from now on.
ibv_context* ibv_import_device(int cmd_fd) {
  const auto file = CommandFile::read(cmd_fd);
  if (!file) return fail(EINVAL);
  auto addresses = host::choose_local_addresses(file->choice);
  if (!addresses) return fail(addresses.error().error);
  host::LocalAddress address = addresses->front();
  address.device_name = file->device_name;
  ContextObject* context = open_context(device_on(address), host::Descriptor(cmd_fd));
  return context == nullptr ? nullptr : &context->context;
}

ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) {
  ContextObject& importer = ContextObject::of(context);
  if (const int error = check(importer); error != 0) return fail(error);
  auto pd = make<PDObject>();
  if (pd == nullptr) return fail(ENOMEM);
  const bool found =
      with_exported(importer, &ContextObject::pds, handle, [&pd](const PDObject& from) {
        pd->domain = from.domain;
        pd->shared = from.shared;
      });
  if (!found) return fail(ENOENT);
  pd->context = context;
  pd->handle = handle;
  importer.pds.insert(pd.get());
  return pd.release();
}

void ibv_unimport_pd(ibv_pd* pd) { forget(PDObject::of(pd)); }

ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) {
  ContextObject& importer = ContextObject::of(pd->context);
  if (const int error = check(importer); error != 0) return fail(error);
  auto mr = make<MRObject>();
  if (mr == nullptr) return fail(ENOMEM);
  const bool found =
      with_exported(importer, &ContextObject::mrs, handle, [&mr](const MRObject& from) {
        mr->length = from.length;
        mr->lkey = from.lkey;
        mr->rkey = from.rkey;
        mr->on_demand = from.on_demand;
        mr->shared = from.shared;
      });
  if (!found) return fail(ENOENT);
  mr->context = pd->context;
  mr->pd = pd;
  mr->handle = handle;
  mr->pd_use = Use(PDObject::of(pd).users);
  importer.mrs.insert(mr.get());
  return mr.release();
}

void ibv_unimport_mr(ibv_mr* mr) { forget(MRObject::of(mr)); }

ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) {
  ContextObject& importer = ContextObject::of(context);
  if (const int error = check(importer); error != 0) return fail(error);
  std::shared_ptr<host::Mapping> memory;
  const bool found = with_exported(importer, &ContextObject::dms, handle,
                                   [&memory](const DMObject& from) { memory = from.memory; });
  if (!found) return fail(ENOENT);
  DMObject* dm = import_dm(importer, std::move(memory), handle);
  return dm == nullptr ? fail(ENOMEM) : dm;
}

void ibv_unimport_dm(ibv_dm* dm) { static_cast<void>(ibv_free_dm(dm)); }
