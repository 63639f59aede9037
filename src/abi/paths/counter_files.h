// Open files of counters: each shows what its counter is at the moment it is read from its
// beginning, as a file of sysfs does. What is opened is a file in memory; read(2) and pread(2) are
// watched, in this process only, to write the number into it first. Streams (fopen) and processes
// that inherit the descriptor see what it was when it was opened.
#pragma once

#include <sys/types.h>

namespace verbena::abi::paths {

// Whether the path, which was redirected, is a counter's, opened for reading only. Then `fd` is the
// descriptor, or -1 and errno.
[[nodiscard]] bool open_counter(const char* real_path, int flags, int& fd);

// Before a read at the offset; -1: of the file's own.
void refresh_counter(int fd, off_t offset);

}  // namespace verbena::abi::paths
