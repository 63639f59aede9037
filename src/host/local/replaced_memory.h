// Replaced memory: private pages of this process that give way to pages of a file with the same
// contents, at the same addresses, so that other processes can map them too (VERBENA_SHARE=on); and
// back.
//
// Other threads may go on: what they write into the pages meanwhile waits, in the handler of the
// fault that it is (memory_faults.h), until the new ones are there. But a system call that writes
// there meanwhile fails with EFAULT.
// While they are the file's, the pages are common with children of fork().
#pragma once

#include "base/types.h"

namespace verbena::host {

// Precondition of both: [address, address + length) are whole pages that can be read and written,
// the file has `length` bytes, and no other call is in progress. If they return false, nothing has
// changed.
[[nodiscard]] bool replace_memory(u64 address, u64 length, int file);
// Replaces it by private anonymous memory.
[[nodiscard]] bool give_back_memory(u64 address, u64 length);

// Waits until no memory is being replaced. Returns how many replacements have begun so far.
u64 wait_for_replacement();

// For the handler of faults: true when the access may be tried again, since the memory there may
// have been about to be replaced, and no longer is. Each replacement gives each thread one try.
// Async-signal-safe.
[[nodiscard]] bool may_retry_after_replacement(u64 address);

}  // namespace verbena::host
