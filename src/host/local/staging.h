// Staging: a buffer to copy through if the kernel's own copy between two processes would be slow.
//
// process_vm_readv(2) and process_vm_writev(2) copy with `rep movsb`. If the destination lies 1 to
// 15 bytes further in its page than the source, AMD's Zen copies at a quarter of its speed or less
// (`bench/limit_process_vm read 524288 1 shift 8` measures it). A second copy, within the cache,
// costs 10 to 70 %.
#pragma once

#include <memory>

#include "memory/sge.h"

namespace verbena::host {

class Staging {
 public:
  static constexpr u64 kBytes = 128 << 10;  // a part of the second-level cache

  // Whether a copy of so many bytes is better made through here.
  [[nodiscard]] static bool suits(u64 to, u64 from, u64 length) {
    const u64 further = (to - from) % kPage;
    return length >= kWorthIt && further >= 1 && further < kSlow;
  }

  // Room for the first of `length` bytes: as many as it takes. It lies half a page from the place
  // that `address` has in its page, so that copies from and to there are quick.
  [[nodiscard]] MutableBytes beside(u64 address, u64 length);

 private:
  static constexpr u64 kPage = 4096, kSlow = 16, kWorthIt = 16 << 10;
  std::unique_ptr<u8[]> memory_;  // when it is first needed
};

}  // namespace verbena::host
