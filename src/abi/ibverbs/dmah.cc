// DMA handles: hints about PCIe transactions, of which this device makes none. They are checked and
// kept. ibv_alloc_dmah(3).
#include "abi/ibverbs/dmah_object.h"

#include <unistd.h>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"

namespace verbena::abi {
namespace {

constexpr u32 kCPU = 1u << 0, kHint = 1u << 1, kMemoryType = 1u << 2;  // of comp_mask
constexpr u8 kHintBits = 2;                                            // PCIe 6, 2.2.7.1.1 (PH)
constexpr u8 kPersistentMemory = 1;

bool legal(const ibv_dmah_init_attr& attr) {
  if ((attr.comp_mask & ~(kCPU | kHint | kMemoryType)) != 0) return false;
  if ((attr.comp_mask & kCPU) != 0 && attr.cpu_id >= ::sysconf(_SC_NPROCESSORS_CONF)) return false;
  if ((attr.comp_mask & kHint) != 0 && attr.ph >> kHintBits != 0) return false;
  return (attr.comp_mask & kMemoryType) == 0 || attr.tph_mem_type <= kPersistentMemory;
}

}  // namespace

Status destroy(DMAHObject& dmah) {
  if (dmah.users.in_use()) return Status::kBusy;
  ContextObject::of(dmah.context).dmahs.erase(&dmah);
  delete &dmah;
  return Status::kOk;
}

}  // namespace verbena::abi

using namespace verbena::abi;

ibv_dmah* ibv_alloc_dmah(ibv_context* context, ibv_dmah_init_attr* attr) try {
  if (!legal(*attr)) return fail(EINVAL);
  auto dmah = make<DMAHObject>();
  if (dmah == nullptr) return fail(ENOMEM);
  dmah->context = context;
  ContextObject::of(context).dmahs.insert(dmah.get());
  return dmah.release();
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_dealloc_dmah(ibv_dmah* dmah) try {
  return refuse(destroy(DMAHObject::of(dmah)));
} catch (...) {
  return refuse(errno_of_exception());
}
