// SharedDomain, SharedRegion: what a PDObject or an MRObject is in the device. Several objects of
// one process may be the same one: those that ibv_import_pd and ibv_import_mr make. Destroying any
// of them destroys it for all; what is left when the last of them goes, goes with it. What was made
// in another process is not destroyed, only what stands for it here.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

#include "host/adapter.h"
#include "host/os/mapping.h"

namespace verbena::abi {

class SharedDomain {
 public:
  SharedDomain(std::shared_ptr<host::Adapter> adapter, ProtectionDomain& domain)
      : adapter_(std::move(adapter)), domain_(&domain) {}
  ~SharedDomain() { static_cast<void>(destroy()); }
  SharedDomain(const SharedDomain&) = delete;
  SharedDomain& operator=(const SharedDomain&) = delete;

  [[nodiscard]] ProtectionDomain* domain() const { return domain_; }
  [[nodiscard]] Status destroy() {  // kOk also when it has gone already
    auto session = adapter_->enter();
    if (gone_) return Status::kOk;
    const Status status = session->dealloc_pd(domain_);
    gone_ = status == Status::kOk;
    return status;
  }

 private:
  const std::shared_ptr<host::Adapter> adapter_;
  ProtectionDomain* const domain_;
  bool gone_ = false;  // with the adapter locked
};

class SharedRegion {
 public:
  SharedRegion(std::shared_ptr<host::Adapter> adapter, LKey key, host::Mapping memory,
               std::shared_ptr<const host::SharedFile> file)
      : adapter_(std::move(adapter)),
        key_(key),
        memory_(std::move(memory)),
        file_(std::move(file)) {}
  ~SharedRegion() { static_cast<void>(destroy()); }
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Copies run to and from `far` from now on, which may be nullptr. The end of the region waits for
  // those that have begun, and so does this call for those of the memory before.
  void set_far(std::shared_ptr<const FarMemory> far) {
    const std::shared_ptr<const FarMemory> before = std::exchange(far_, std::move(far));
    await_copies(before.get());
  }
  [[nodiscard]] bool is_far() const { return far_ != nullptr; }
  void on_key_changed(LKey key) { key_ = key; }
  void on_file_changed(std::shared_ptr<const host::SharedFile> file) { file_ = std::move(file); }
  [[nodiscard]] Status destroy() {  // kOk also when it has gone already
    if (const Status status = take_out(); status != Status::kOk) return status;
    await_copies(far_.get());
    return Status::kOk;
  }

 private:
  static void await_copies(const FarMemory* far) {
    while (far != nullptr && far->running() != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  [[nodiscard]] Status take_out() {
    auto session = adapter_->enter();
    if (gone_) return Status::kOk;
    const Status status = session->memory().deregister_mr(key_);
    gone_ = status == Status::kOk || status == Status::kNotFound;  // a failed re-registration
    return gone_ ? Status::kOk : status;
  }

  const std::shared_ptr<host::Adapter> adapter_;
  LKey key_;
  std::shared_ptr<const FarMemory> far_;
  const host::Mapping memory_;                    // of a dma-buf
  std::shared_ptr<const host::SharedFile> file_;  // that peers map, or nullptr
  bool gone_ = false;                             // with the adapter locked
};

}  // namespace verbena::abi
