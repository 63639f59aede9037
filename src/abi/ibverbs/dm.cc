// Device memory. ibv_alloc_dm(3), ibv_dm_export_dmabuf_fd(3). Regions of it: mr.cc.
#include <cstring>

#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"

namespace verbena::abi {
namespace {

constexpr u32 kMaxLogAlignment = 12;  // a page, where it begins anyway

int copy_to_dm(ibv_dm* dm, u64 offset, const void* from, std::size_t length) {
  const DMObject& self = DMObject::of(dm);
  if (!self.covers(offset, length)) return refuse(EFAULT);
  if (!is_whole_words(offset, length)) return refuse(EINVAL);
  std::memcpy(self.memory->data() + offset, from, length);
  return 0;
}

int copy_from_dm(void* to, ibv_dm* dm, u64 offset, std::size_t length) {
  const DMObject& self = DMObject::of(dm);
  if (!self.covers(offset, length)) return refuse(EFAULT);
  if (!is_whole_words(offset, length)) return refuse(EINVAL);
  std::memcpy(to, self.memory->data() + offset, length);
  return 0;
}

// Returns false if the context would have more than its limit.
bool take_share(ContextObject& context, u64 length) {
  if (length > kMaxDMBytes) return false;
  if (context.dm_bytes.fetch_add(length) <= kMaxDMBytes - length) return true;
  context.dm_bytes -= length;
  return false;
}

DMObject* adopt(std::unique_ptr<DMObject> dm, ContextObject& owner,
                std::shared_ptr<host::Mapping> memory, u32 handle) {
  dm->memory = std::move(memory);
  dm->context = &owner.context;
  dm->memcpy_to_dm = guarded<copy_to_dm>;
  dm->memcpy_from_dm = guarded<copy_from_dm>;
  dm->handle = handle;
  owner.dms.insert(dm.get());
  return dm.release();
}

}  // namespace

DMObject* import_dm(ContextObject& context, std::shared_ptr<host::Mapping> memory, u32 handle) {
  auto dm = make<DMObject>();
  if (dm == nullptr) return nullptr;
  context.dm_bytes += memory->size();
  return adopt(std::move(dm), context, std::move(memory), handle);
}

Status destroy(DMObject& dm) {
  if (dm.users.in_use()) return Status::kBusy;
  dm.owner().dm_bytes -= dm.memory->size();
  dm.owner().dms.erase(&dm);
  delete &dm;
  return Status::kOk;
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  if (attr->comp_mask != 0 || attr->length == 0 || attr->log_align_req > kMaxLogAlignment)
    return fail(EINVAL);
  ContextObject& owner = ContextObject::of(context);
  auto dm = make<DMObject>();
  if (dm == nullptr || !take_share(owner, attr->length)) return fail(ENOMEM);
  host::Expected<host::Mapping> memory = host::Mapping::create(attr->length);
  if (!memory) {
    owner.dm_bytes -= attr->length;
    return fail(memory.error().error);
  }
  static std::atomic<u32> next_handle{1};
  return adopt(std::move(dm), owner, std::make_shared<host::Mapping>(std::move(*memory)),
               next_handle++);
}

int free_dm(ibv_dm* dm) { return refuse(destroy(DMObject::of(dm))); }

}  // namespace verbena::abi

using namespace verbena::abi;

// A file of memory, which maps like a dma-buf.
int ibv_dm_export_dmabuf_fd(ibv_dm* dm) try {
  return DMObject::of(dm).memory->export_fd();
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}
