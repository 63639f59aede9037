// BufObject: a buffer that ibv_alloc_buf has allocated: by the parent domain's allocator, or from
// the heap. It is ordinary memory.
#pragma once

#include <cstdlib>
#include <memory>

#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/pd_object.h"

// Opaque to programs.
struct ibv_buf {};

namespace verbena::abi {

struct FreeHeapMemory {
  void operator()(u8* memory) const { std::free(memory); }
};

struct BufObject : ibv_buf {
  static BufObject& of(ibv_buf* buf) { return *static_cast<BufObject*>(buf); }
  [[nodiscard]] bool covers(const void* address, std::size_t bytes) const {
    const auto offset = static_cast<std::size_t>(static_cast<const u8*>(address) - data);
    return offset <= size && bytes <= size - offset;
  }

  PDObject* pd = nullptr;
  Use pd_use;
  u8* data = nullptr;
  std::size_t size = 0;
  std::unique_ptr<u8, FreeHeapMemory> memory;  // nullptr if the memory is the allocator's
};

[[nodiscard]] Status destroy(BufObject& buf);  // always kOk

}  // namespace verbena::abi
