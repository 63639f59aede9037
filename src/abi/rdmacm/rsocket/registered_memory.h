// RegisteredMemory: zeroed bytes, registered for as long as they are there.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <new>

#include "abi/rdmacm/results.h"
#include "base/types.h"

namespace verbena::rdmacm::rsocket {

class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  ~RegisteredMemory() {
    if (mr_ != nullptr) ibv_dereg_mr(mr_);
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // Returns 0, or -1 and sets errno. `access` as ibv_reg_mr() has it.
  [[nodiscard]] int open(ibv_pd* pd, std::size_t size_bytes, int access) {
    bytes_.reset(new (std::nothrow) u8[size_bytes]());
    if (bytes_ == nullptr) return fail(ENOMEM);
    mr_ = ibv_reg_mr(pd, bytes_.get(), size_bytes, access);
    return mr_ != nullptr ? 0 : -1;
  }

  [[nodiscard]] u8* bytes() const { return bytes_.get(); }
  [[nodiscard]] u64 address() const { return reinterpret_cast<u64>(bytes_.get()); }
  [[nodiscard]] u32 lkey() const { return mr_->lkey; }
  [[nodiscard]] u32 rkey() const { return mr_->rkey; }

 private:
  std::unique_ptr<u8[]> bytes_;
  ibv_mr* mr_ = nullptr;
};

}  // namespace verbena::rdmacm::rsocket
