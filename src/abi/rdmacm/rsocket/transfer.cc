// Bytes through a stream rsocket. rsend, rrecv and their forms; riomap, riounmap, riowrite.
#include <sys/mman.h>

#include "abi/rdmacm/rsocket/stream_socket.h"

namespace verbena::rdmacm::rsocket {
namespace {

// Transfers grow, so that the first bytes of many travel while the next are copied.
constexpr u32 kFirstTransfer = 2048, kMostTransfer = 65536;  // bytes

constexpr std::chrono::microseconds kSeeThrough{50};

u32 grown(u32 limit) { return std::min(limit * 2, kMostTransfer); }

}  // namespace

bool StreamSocket::can_read() const {
  return stream_->has_data() || !reading_ || !is_connected() || stream_->peer_stopped_sending();
}

int StreamSocket::send_error() const {
  if (!writing_) return EPIPE;
  if (state_ == State::kClosed) return EBADF;
  return state_ == State::kBroken && error_ != 0 ? error_ : ECONNRESET;
}

int StreamSocket::ready_to_send(Lock& lock, bool nonblocking) {
  if (wait(lock, nonblocking, [&] { return stream_->can_send() || cannot_send(); }) != 0) return -1;
  return cannot_send() ? fail(send_error()) : 0;
}

ssize_t StreamSocket::send(std::span<const iovec> parts, int flags, const sockaddr* to,
                           socklen_t length) {
  if (to != nullptr || length != 0) return fail(EISCONN);
  Lock lock(mutex_);
  const bool nonblocking = is_nonblocking(flags);
  if (await_connected(lock, nonblocking) != 0) return -1;
  if (cannot_send()) return fail(send_error());
  if (send_mappings(lock, nonblocking) != 0) return -1;
  IOCursor from(parts);
  const std::size_t all = from.left();
  for (u32 limit = kFirstTransfer; from.left() != 0; limit = grown(limit)) {
    if ((!stream_->can_send() || cannot_send()) && ready_to_send(lock, nonblocking) != 0) break;
    stream_->send_some(from, limit);
    settle();
  }
  const std::size_t sent = all - from.left();
  return sent == 0 && all != 0 ? -1 : static_cast<ssize_t>(sent);
}

// --- receiving

ssize_t StreamSocket::receive(std::span<const iovec> parts, int flags, NameBuffer from) {
  Lock lock(mutex_);
  if (await_connected(lock, is_nonblocking(flags)) != 0) return -1;
  IOCursor to(parts);
  const ssize_t received = receive_bytes(lock, to, flags);
  if (received > 0 && from.address != nullptr && give_name(*rdma_get_peer_addr(id_), from) != 0)
    return -1;
  return received;
}

ssize_t StreamSocket::receive_bytes(Lock& lock, IOCursor& to, int flags) {
  const std::size_t all = to.left();
  const bool nonblocking = is_nonblocking(flags);
  if (all == 0) return 0;
  do {
    if (!stream_->has_data() && wait(lock, nonblocking, [&] { return can_read(); }) != 0)
      return to.left() == all ? -1 : static_cast<ssize_t>(all - to.left());
    if (!stream_->has_data()) return end_of_data(all - to.left());
    if ((flags & MSG_PEEK) != 0) return static_cast<ssize_t>(stream_->peek(to));
    stream_->receive_some(to);
  } while (to.left() != 0 && (flags & MSG_WAITALL) != 0);
  return static_cast<ssize_t>(all - to.left());
}

// There is no more, and will not be: what the call answers that has got so much.
ssize_t StreamSocket::end_of_data(std::size_t received) const {
  if (received != 0 || !reading_) return static_cast<ssize_t>(received);
  if (state_ == State::kClosed) return fail(EBADF);
  return state_ == State::kBroken && error_ != 0 ? fail(error_) : 0;
}

// --- mapped buffers

std::optional<u32> StreamSocket::free_mapping_index() const {
  for (u32 index = 0; index < stream_->peer_iomaps(); ++index) {
    const auto is_at = [&](const Mapping& m) { return m.is_remote && m.index == index; };
    if (std::ranges::none_of(mappings_, is_at)) return index;
  }
  return std::nullopt;
}

off_t StreamSocket::map(void* buffer, std::size_t length, int access, off_t offset) {
  Lock lock(mutex_);
  if ((access & ~PROT_WRITE) != 0 || offset < -1) return fail(EINVAL);
  if (stream_ == nullptr && state_ != State::kConnecting) return fail(EINVAL);
  if (!peer_ && await_connected(lock, is_nonblocking(0)) != 0) return -1;
  const bool is_remote = (access & PROT_WRITE) != 0;
  const std::optional<u32> index = is_remote ? free_mapping_index() : 0;
  if (!index || length > UINT32_MAX) return fail(ENOMEM);
  const int rights = IBV_ACCESS_LOCAL_WRITE | (is_remote ? IBV_ACCESS_REMOTE_WRITE : 0);
  ibv_mr* const mr = ibv_reg_mr(stream_->pd(), buffer, length, rights);
  if (mr == nullptr) return -1;
  const u64 at = offset == -1 ? reinterpret_cast<u64>(buffer) : static_cast<u64>(offset);
  mappings_.push_back({.buffer = buffer,
                       .length = length,
                       .offset = at,
                       .mr = mr,
                       .is_remote = is_remote,
                       .index = *index,
                       .is_pending = is_remote});
  return static_cast<off_t>(at);
}

int StreamSocket::unmap(void* buffer, std::size_t length) {
  const Lock lock(mutex_);
  const auto found = std::ranges::find_if(
      mappings_, [&](const Mapping& m) { return m.buffer == buffer && m.length == length; });
  if (found == mappings_.end()) return fail(EINVAL);
  if (const int error = ibv_dereg_mr(found->mr)) return fail(error);
  mappings_.erase(found);
  return 0;
}

// The peer knows of a mapping before it gets what is sent after.
int StreamSocket::send_mappings(Lock& lock, bool nonblocking) {
  const auto next = [&] { return std::ranges::find_if(mappings_, &Mapping::is_pending); };
  while (next() != mappings_.end()) {
    if (ready_to_send(lock, nonblocking) != 0) return -1;
    const auto mapping = next();  // sought again: there was time for riounmap()
    if (mapping == mappings_.end()) break;
    mapping->is_pending = false;
    stream_->send_iomap(mapping->index,
                        {.offset = mapping->offset,
                         .buffer = {.address = reinterpret_cast<u64>(mapping->buffer),
                                    .key = mapping->mr->rkey,
                                    .length = static_cast<u32>(mapping->length)}});
  }
  return 0;
}

// A program that writes into memory waits for the answer in memory too, and makes no call
// meanwhile. The search for the completion here tells the device that, and often brings the answer
// as well. If the completion does not come, arm() does the same.
void StreamSocket::see_through() {
  const auto until = Clock::now() + kSeeThrough;
  while (!stream_->is_sent() && !cannot_send())
    if (!progress() && Clock::now() >= until) return stream_->arm();
}

// Ends where the peer has mapped nothing.
ssize_t StreamSocket::write_mapped(const void* bytes, std::size_t length, off_t offset, int flags) {
  Lock lock(mutex_);
  const bool nonblocking = is_nonblocking(flags);
  if (await_connected(lock, nonblocking) != 0) return -1;
  if (cannot_send()) return fail(send_error());
  if (send_mappings(lock, nonblocking) != 0) return -1;
  const iovec part{.iov_base = const_cast<void*>(bytes), .iov_len = length};
  IOCursor from({&part, 1});
  const bool is_alone = stream_->is_sent();
  bool is_failed = false;
  u64 at = static_cast<u64>(offset);
  for (u32 limit = kFirstTransfer; from.left() != 0; limit = grown(limit)) {
    const auto can_write = [&] { return stream_->can_write_directly() || cannot_send(); };
    is_failed =
        wait(lock, nonblocking, can_write) != 0 || (cannot_send() && fail(send_error()) != 0);
    if (is_failed) break;
    const auto to = stream_->find_iomap(at);
    if (!to) break;
    at += stream_->write_directly(from, *to, at, limit);
  }
  if (is_alone && !is_failed) see_through();
  const std::size_t written = length - from.left();
  return written == 0 && is_failed ? -1 : static_cast<ssize_t>(written);
}

}  // namespace verbena::rdmacm::rsocket
