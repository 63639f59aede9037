#include "host/cuda/peer_region.h"

#include <cstring>

#include "host/cuda/region.h"

namespace verbena::host::cuda {
namespace {

void close_handle(const DriverAPI& driver, Context context, DevicePointer memory) {
  if (driver.context_push(context) != kSuccess) return;  // it has died, with all that was open
  static_cast<void>(driver.ipc_close(memory));
  Context popped;
  static_cast<void>(driver.context_pop(&popped));
}

}  // namespace

std::shared_ptr<PeerRegion> CudaPeerRegion::make(const FarHandle& handle, Owner owner) {
  Copier* const copier = Copier::of_process();
  if (copier == nullptr || copier->driver().copy_on_device == nullptr) return nullptr;
  const bool can_open = copier->driver().ipc_open != nullptr && handle.opaque != FarHandle{}.opaque;
  if (owner == Owner::kAnother && !can_open) return nullptr;
  return std::make_shared<CudaPeerRegion>(*copier, handle, owner);
}

CudaPeerRegion::~CudaPeerRegion() {
  if (opened_)
    copier_.run_later(
        [&driver = copier_.driver(), context = opened_->context,
         memory = opened_->start - handle_.offset] { close_handle(driver, context, memory); });
}

std::optional<DevicePointer> CudaPeerRegion::at(u64 offset, u64 length, Context context) {
  if (owner_ == Owner::kThisProcess)
    return exists() ? std::optional(handle_.address + offset) : std::nullopt;
  if (!opened_ && !open(context)) return std::nullopt;
  if (offset > opened_->size || length > opened_->size - offset) return std::nullopt;
  return opened_->start + offset;
}

bool CudaPeerRegion::exists() const {
  Result result = kSuccess;
  const std::optional<PointerInfo> now = ask(copier_.driver(), handle_.address, result);
  return now && now->is_device && now->buffer_id == handle_.identity;
}

// A handle opens the whole allocation, at its start. It may name more than there is: its sender is
// another process.
bool CudaPeerRegion::open(Context context) {
  if (is_refused_) return false;
  const DriverAPI& driver = copier_.driver();
  IPCHandle handle;
  std::memcpy(&handle, handle_.opaque.data(), sizeof handle);
  DevicePointer memory = 0;
  is_refused_ = driver.ipc_open(&memory, handle, kLazyPeerAccess) != kSuccess;
  if (is_refused_) return false;
  Result result = kSuccess;
  const std::optional<PointerInfo> range = ask(driver, memory, result);
  const u64 size = range ? range->range_start + range->range_size - memory : 0;
  opened_ = Opened{context, memory + handle_.offset, size - std::min(size, handle_.offset)};
  return true;
}

void CudaPeerRegion::close() {
  if (!opened_) return;
  close_handle(copier_.driver(), opened_->context, opened_->start - handle_.offset);
  opened_.reset();
}

}  // namespace verbena::host::cuda
