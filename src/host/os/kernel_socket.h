// A socket of the kernel, also where the program runs with a library that puts its own socket()
// before libc's: librspreload makes rsockets of sockets, and rsockets stand on ours. (It leaves
// alone what it has not made, so all other calls may go through it.)
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/os/descriptor.h"

namespace verbena::host {

// As socket(2): on failure none, and errno says why.
[[nodiscard]] inline Descriptor open_kernel_socket(int family, int type) {
  return Descriptor(static_cast<int>(::syscall(SYS_socket, family, type, 0)));
}

}  // namespace verbena::host
