// GPUBuffers: the buffers of a call that lie in GPU memory, staged in host memory: copied in before
// the operation begins and out when it has succeeded. Nothing here is compiled or linked with CUDA:
// the driver is the one that the program has loaded.
//
// The copies go through a stream of the program, by default the default stream, so they come after
// the work that the program has queued there. They have ended when the call returns. The calling
// thread's current context is the same before and after.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "base/types.h"
#include "coll/error.h"

namespace verbena::coll {

class GPUBuffers {
 public:
  struct Range {
    const void* address = nullptr;
    u64 bytes = 0;
    bool is_source = false;  // is read; otherwise it is written
  };

  // Copies those of the ranges in that are GPU memory, on `stream` (CUstream). Ranges that overlap
  // are one buffer, for calls in place. Returns nullptr if none is GPU memory.
  [[nodiscard]] static Expected<std::unique_ptr<GPUBuffers>> stage(
      void* stream, std::initializer_list<Range> ranges);
  explicit GPUBuffers(void* stream) : stream_(stream) {}
  // Returns the place in host memory for `address`, or `address` itself if it is not staged.
  [[nodiscard]] void* place_of(const void* address) const;
  // Copies what was written out.
  [[nodiscard]] Error copy_out();

 private:
  struct Driver;
  struct Buffer {
    u64 address;
    std::vector<u8> host;
    void* context;
    std::vector<Range> ranges;
  };
  static const Driver* driver();
  [[nodiscard]] Error add(const Range& range);
  [[nodiscard]] Error copy_in(const Buffer& buffer);

  void* const stream_;
  std::vector<Buffer> buffers_;
};

}  // namespace verbena::coll
