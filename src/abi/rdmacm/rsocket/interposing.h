// Which library calls rsocket() in a program's place.
#pragma once

namespace verbena::rdmacm::rsocket {

// Whether rsocket() must not take SOCK_CLOEXEC and SOCK_NONBLOCK. Debian 12's librspreload replaces
// socket() and accept(), but not accept4(). A program that uses such flags calls accept4(), so no
// socket of its may become an rsocket, which could accept nothing; with the librdmacm of that time
// none does. Later ones replace accept4() too. Other libraries, libverbena-paths.so among them,
// replace socket() and not accept().
[[nodiscard]] bool refuses_type_flags();

}  // namespace verbena::rdmacm::rsocket
