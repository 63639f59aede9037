// The rsocket family while this library makes no rsockets: rsocket(7).
// rsocket() answers EOPNOTSUPP, so no descriptor is ever one of ours: what takes an rsocket answers
// EBADF, as the family does for a descriptor that is none, and what waits for a mix of rsockets and
// other descriptors waits for the others. Programs that link the family but use rdma_cm (rping,
// ucmatose, udaddy, ...: their waits go through rpoll) run as they should.
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "abi/rdmacm/results.h"

using verbena::rdmacm::fail;

extern "C" {

int rsocket(int, int, int) { return fail(EOPNOTSUPP); }

int rbind(int, const sockaddr*, socklen_t) { return fail(EBADF); }
int rlisten(int, int) { return fail(EBADF); }
int raccept(int, sockaddr*, socklen_t*) { return fail(EBADF); }
int rconnect(int, const sockaddr*, socklen_t) { return fail(EBADF); }
int rshutdown(int, int) { return fail(EBADF); }
int rclose(int) { return fail(EBADF); }

ssize_t rrecv(int, void*, size_t, int) { return fail(EBADF); }
ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) { return fail(EBADF); }
ssize_t rrecvmsg(int, msghdr*, int) { return fail(EBADF); }
ssize_t rsend(int, const void*, size_t, int) { return fail(EBADF); }
ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) { return fail(EBADF); }
ssize_t rsendmsg(int, const msghdr*, int) { return fail(EBADF); }
ssize_t rread(int, void*, size_t) { return fail(EBADF); }
ssize_t rreadv(int, const iovec*, int) { return fail(EBADF); }
ssize_t rwrite(int, const void*, size_t) { return fail(EBADF); }
ssize_t rwritev(int, const iovec*, int) { return fail(EBADF); }

int rgetpeername(int, sockaddr*, socklen_t*) { return fail(EBADF); }
int rgetsockname(int, sockaddr*, socklen_t*) { return fail(EBADF); }
int rsetsockopt(int, int, int, const void*, socklen_t) { return fail(EBADF); }
int rgetsockopt(int, int, int, void*, socklen_t*) { return fail(EBADF); }
int rfcntl(int, int, ...) { return fail(EBADF); }

off_t riomap(int, void*, size_t, int, int, off_t) { return fail(EBADF); }
int riounmap(int, void*, size_t) { return fail(EBADF); }
size_t riowrite(int, const void*, size_t, off_t, int) { return static_cast<size_t>(fail(EBADF)); }

int rpoll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  return ::poll(descriptors, count, timeout_ms);
}

int rselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  return ::select(count, readable, writable, exceptional, timeout);
}

// Declared by newer headers than Debian 12's.
int repoll_create(int flags);
int repoll_ctl(int poll, int operation, int descriptor, epoll_event* event);
int repoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms);

int repoll_create(int flags) { return ::epoll_create1(flags); }
int repoll_ctl(int poll, int operation, int descriptor, epoll_event* event) {
  return ::epoll_ctl(poll, operation, descriptor, event);
}
int repoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms) {
  return ::epoll_wait(poll, events, max_events, timeout_ms);
}

}  // extern "C"
