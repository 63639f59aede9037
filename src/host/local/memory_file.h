// MemoryFile: the memory of another process as a file, /proc/PID/mem (proc_pid_mem(5)): for copies
// inside one page. They take 1.2 us there and 1.6 us with process_vm_writev(2), for which the
// kernel finds the process, asks whether we may, and pins the page, in each call. Longer copies go
// through a page of the kernel's, page by page, and take longer.
//
// Who may open it may use process_vm_writev; it may be missing all the same, or not be writable
// (proc(5), proc_mem.force_override). What it does not do, process_vm_writev is to try.
//
// The file is of an address space, whatever becomes of the PID: of one that has ended, by exit or
// execve(2), nothing is read or written.
//
// Protection does not stop it: it reads and writes pages that the process has since made
// inaccessible or read-only (mprotect(2)), as a card does, which has them pinned. Where they are a
// file's, mapped MAP_PRIVATE, the process gets its own copy of the page; where they are MAP_SHARED
// and read-only, it fails. So the rights of the key are all that says what may be written, and who
// calls has checked them. It must not write to a process that holds others off by protection, to
// replace memory (SegmentHeader::replaces_memory).
#pragma once

#include "host/descriptor.h"
#include "memory/sge.h"

namespace verbena::host {

class MemoryFile {
 public:
  MemoryFile() = default;  // of none
  // It is the process's that had the PID at this moment.
  explicit MemoryFile(u32 pid);

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  // Whether it is the quickest way; for a write, whether what is written is seen at once.
  [[nodiscard]] static bool suits_write(u64 to, u64 length);
  [[nodiscard]] static bool suits_read(u64 from, u64 length);

  // False: not all of it.
  [[nodiscard]] bool write(u64 to, Bytes from) const;
  [[nodiscard]] bool read(u64 from, MutableBytes to) const;

 private:
  Descriptor file_;
};

}  // namespace verbena::host
