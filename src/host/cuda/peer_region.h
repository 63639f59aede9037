// CudaPeerRegion: GPU memory that another process has registered, opened here by CUDA's
// interprocess communication (cuIpcOpenMemHandle), or this process's own. It is opened at the first
// copy and closed when nothing needs it any more, both in the copier's thread.
//
// CUDA leaves open what happens to an open handle when the owner frees the memory. Memory of this
// process is looked at before each copy, as all of a CudaRegion is.
#pragma once

#include <memory>
#include <optional>

#include "host/cuda/copier.h"
#include "memory/far_handle.h"
#include "memory/peer_place.h"

namespace verbena::host::cuda {

class CudaPeerRegion final : public PeerRegion {
 public:
  enum class Owner : u8 { kThisProcess, kAnother };
  // Returns nullptr if this process cannot open it.
  [[nodiscard]] static std::shared_ptr<PeerRegion> make(const FarHandle& handle, Owner owner);
  CudaPeerRegion(Copier& copier, const FarHandle& handle, Owner owner)
      : copier_(copier), handle_(handle), owner_(owner) {}
  ~CudaPeerRegion() override;

  // --- in the copier's thread
  // Returns the address of [offset, offset + length), or nullopt if the memory does not exist or
  // cannot be opened in `context`, which is current.
  [[nodiscard]] std::optional<DevicePointer> at(u64 offset, u64 length, Context context);
  // A copy has failed: the next opens it again.
  void close();

 private:
  struct Opened {
    Context context;
    DevicePointer start;  // of the region
    u64 size;             // from there on
  };
  [[nodiscard]] bool exists() const;
  [[nodiscard]] bool open(Context context);

  Copier& copier_;
  const FarHandle handle_;
  const Owner owner_;
  std::optional<Opened> opened_;
  bool is_refused_ = false;  // by the driver, for good
};

}  // namespace verbena::host::cuda
