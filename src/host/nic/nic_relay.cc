#include "host/nic/nic_relay.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/os/socket_option.h"
#include "wire/iwarp/mpa.h"

namespace verbena::host {

// close() then resets the connection, and drops what the peer has not got yet.
NICRelay::~NICRelay() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (is_broken_) (void)set_option(network_.socket.get(), SOL_SOCKET, SO_LINGER, at_once);
}

void NICRelay::note(u32 events, Side& side) {
  constexpr u32 kNews = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & kNews) != 0) side.has_news = true;
  if ((events & (EPOLLIN | kNews)) != 0) side.is_readable = true;
  if ((events & (EPOLLOUT | EPOLLERR)) != 0) side.takes = true;
}

// Nobody takes what comes for a program that is gone.
void NICRelay::on_program(u32 events) {
  note(events, program_);
  if ((events & EPOLLHUP) == 0) return;
  is_orphan_ = in_.is_done = true;
}

// A reset that waits for a program that takes nothing would keep the connection for ever.
void NICRelay::on_network(u32 events) {
  note(events, network_);
  if ((events & EPOLLERR) != 0 && !can_receive()) break_off();
}

u64 NICRelay::send(u64 bytes, Piece& piece) { return move(out_, program_, network_, bytes, piece); }

u64 NICRelay::receive(u64 bytes, Piece& piece) {
  return move(in_, network_, program_, bytes, piece);
}

u64 NICRelay::move(Direction& direction, Side& from, Side& to, u64 bytes, Piece& piece) {
  u64 moved = 0;
  while (moved < bytes && can_move(direction, from, to)) {
    deliver_kept(direction, to);
    if (direction.has_kept() || !to.takes) break;
    if (direction.has_ended) {
      to.socket.finish();
      direction.is_done = true;
      break;
    }
    const std::span<u8> room = std::span(piece).first(std::min<u64>(piece.size(), bytes - moved));
    const std::size_t got = fetch(direction, from, room);
    moved += got;
    if (got != 0 && &direction == &out_) check_first(room.first(got));
    if (got != 0 && !is_broken_) deliver(direction, to, room.first(got));
  }
  return moved;
}

// Returns the number of bytes; 0: there are none now, or no more.
std::size_t NICRelay::fetch(Direction& direction, Side& from, std::span<u8> room) {
  iovec into{.iov_base = room.data(), .iov_len = room.size()};
  const i64 got = from.socket.receive({&into, 1});
  if (got < 0) {
    from.is_readable = errno == EINTR;
    if (errno != EAGAIN && errno != EINTR) break_off();
    return 0;
  }
  direction.has_ended = got == 0;
  // The kernel tells of bytes that come later. Decrypted ones may wait in the socket's TLS.
  const bool is_all = static_cast<std::size_t>(got) < room.size();
  if (is_all && !from.has_news && !from.socket.is_encrypted()) from.is_readable = false;
  return static_cast<std::size_t>(got);
}

void NICRelay::deliver(Direction& direction, Side& to, std::span<u8> bytes) {
  const std::size_t given = give(direction, to, bytes);
  if (given == bytes.size() || is_broken_ || direction.is_done) return;
  if (direction.kept == nullptr) direction.kept = std::make_unique<u8[]>(kPieceBytes);
  std::ranges::copy(bytes.subspan(given), direction.kept.get());
  direction.kept_from = 0;
  direction.kept_to = bytes.size() - given;
}

void NICRelay::deliver_kept(Direction& direction, Side& to) {
  if (to.socket.has_unsent()) to.takes = to.socket.flush();
  if (!direction.has_kept() || !to.takes) return;
  const std::span<u8> all(direction.kept.get(), kPieceBytes);
  direction.kept_from += give(
      direction, to, all.subspan(direction.kept_from, direction.kept_to - direction.kept_from));
}

// Returns the number of bytes that the receiver takes.
std::size_t NICRelay::give(Direction& direction, Side& to, std::span<u8> bytes) {
  iovec from{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const i64 sent = to.socket.send({&from, 1});
  if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
    if (&to == &network_)
      break_off();
    else
      direction.is_done = true;  // the program reads no more; it may still send
    return bytes.size();
  }
  const auto given = static_cast<std::size_t>(std::max<i64>(sent, 0));
  to.takes = given == bytes.size() && !to.socket.has_unsent();
  return given;
}

void NICRelay::check_first(std::span<const u8> bytes) {
  if (first_size_ == kKeyBytes) return;
  const std::size_t size = std::min(kKeyBytes - first_size_, bytes.size());
  std::copy_n(bytes.begin(), size, first_.begin() + static_cast<std::ptrdiff_t>(first_size_));
  first_size_ += size;
  const bool is_reply = opener_ == Opener::kPeer;
  if (iwarp::MPAFrame::may_begin(std::span(first_).first(first_size_), is_reply)) return;
  has_sent_no_mpa_ = true;
  break_off();
}

}  // namespace verbena::host
