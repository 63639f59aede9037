// setsockopt() for a value of fixed size; false: refused, errno says why.
#pragma once

#include <sys/socket.h>

#include <type_traits>

namespace verbena::host {

template <typename T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] inline bool set_option(int fd, int level, int name, const T& value) {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

}  // namespace verbena::host
