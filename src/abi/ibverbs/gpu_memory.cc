#include "abi/ibverbs/gpu_memory.h"

#include "abi/ibverbs/refusals.h"
#include "host/os/mapped_memory.h"

namespace verbena::abi {

// Does not depend on the rights: on-demand memory need not be there yet.
bool is_perhaps_gpu_memory(const void* address, std::size_t length) {
  return length != 0 && address != nullptr &&
         !host::is_mapped(static_cast<const u8*>(address), length, host::PageRight::kRead);
}

int prepare_staging(ContextObject& owner, const host::cuda::CudaRegion& region) {
  if (owner.enter()->memory().copies().has_staging()) return 0;
  auto staging = region.make_staging(CopyQueue::kStagingBytes);  // no lock is held here
  if (!staging) {
    explain_refused_registration(staging.error().message);
    return staging.error().error;
  }
  auto session = owner.enter();
  CopyQueue& copies = session->memory().copies();
  if (!copies.has_staging()) copies.use_staging(std::move(*staging));
  return 0;
}

}  // namespace verbena::abi
