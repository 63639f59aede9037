#include "host/links/raw/xdp_socket.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "host/links/raw/xdp_error.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"

// Linux 6.6; older headers lack them.
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

namespace verbena::host {
namespace {

// The kernel sends some 32 frames in one call, in copy mode.
constexpr u32 kMaxWakeups = 64;

u32 load_acquire(u32* p) { return std::atomic_ref(*p).load(std::memory_order_acquire); }
void store_release(u32* p, u32 value) {
  std::atomic_ref(*p).store(value, std::memory_order_release);
}

}  // namespace

// --- rings

template <typename T>
void XDPRing<T>::place(u8* memory, const xdp_ring_offset& offsets, u32 size) {
  producer_ = reinterpret_cast<u32*>(memory + offsets.producer);
  consumer_ = reinterpret_cast<u32*>(memory + offsets.consumer);
  flags_ = reinterpret_cast<u32*>(memory + offsets.flags);
  entries_ = reinterpret_cast<T*>(memory + offsets.desc);
  size_ = size;
  mask_ = size - 1;
}

template <typename T>
u32 XDPRing<T>::room() const {
  return size_ - (next_ - load_acquire(consumer_));
}

template <typename T>
void XDPRing<T>::publish() {
  store_release(producer_, next_);
}

template <typename T>
bool XDPRing<T>::is_pending() const {
  return load_acquire(consumer_) != *producer_;
}

template <typename T>
u32 XDPRing<T>::waiting() const {
  return load_acquire(producer_) - next_;
}

template <typename T>
void XDPRing<T>::release() {
  store_release(consumer_, next_);
}

template <typename T>
bool XDPRing<T>::needs_wakeup() const {
  return (std::atomic_ref(*flags_).load(std::memory_order_relaxed) & XDP_RING_NEED_WAKEUP) != 0;
}

// --- opening

Expected<XDPSocket> XDPSocket::open(u32 interface_index, u32 queue, XDPFrames frames) {
  XDPSocket xdp;
  xdp.socket_ = open_kernel_socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC);
  if (!xdp.socket_.is_open()) return xdp_failure("open an AF_XDP socket");
  Expected<Mapping> memory = Mapping::create(kUMEMSize);
  if (!memory) return tl::unexpected(memory.error());
  xdp.memory_ = std::move(*memory);
  if (!xdp.register_memory()) return xdp_failure("register its memory");
  if (!xdp.map_rings()) return xdp_failure("make its rings");
  xdp.give_all_chunks();
  if (!xdp.bind(interface_index, queue, frames))
    return xdp_failure("bind to queue " + std::to_string(queue) + " of its interface");
  xdp.slots_ = std::make_unique<Slots>();
  std::iota(xdp.slots_->free.begin(), xdp.slots_->free.end(), u16{0});
  xdp.gathered_ = std::make_unique_for_overwrite<std::array<u8, kMaxFrameSize>>();
  return xdp;
}

bool XDPSocket::register_memory() {
  xdp_umem_reg memory{};
  memory.addr = reinterpret_cast<u64>(memory_.data());
  memory.len = kUMEMSize;
  memory.chunk_size = kChunkSize;
  return set_option(fd(), SOL_XDP, XDP_UMEM_REG, memory) &&
         set_option(fd(), SOL_XDP, XDP_UMEM_FILL_RING, kReceiveChunks) &&
         set_option(fd(), SOL_XDP, XDP_UMEM_COMPLETION_RING, kSendRingSize) &&
         set_option(fd(), SOL_XDP, XDP_RX_RING, kReceiveChunks) &&
         set_option(fd(), SOL_XDP, XDP_TX_RING, kSendRingSize);
}

bool XDPSocket::map_rings() {
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof(offsets);
  if (::getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) return false;
  const auto map = [&](Mapping& memory, auto& ring, const xdp_ring_offset& at, u64 page_offset,
                       u32 entries, std::size_t entry_size) {
    Expected<Mapping> mapped =
        Mapping::of_file(fd(), page_offset, at.desc + entries * entry_size, MapAccess::kReadWrite);
    if (!mapped) return false;
    memory = std::move(*mapped);
    ring.place(memory.data(), at, entries);
    return true;
  };
  return map(ring_memory_[0], fill_, offsets.fr, XDP_UMEM_PGOFF_FILL_RING, kReceiveChunks,
             sizeof(u64)) &&
         map(ring_memory_[1], completed_, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, kSendRingSize,
             sizeof(u64)) &&
         map(ring_memory_[2], received_, offsets.rx, XDP_PGOFF_RX_RING, kReceiveChunks,
             sizeof(xdp_desc)) &&
         map(ring_memory_[3], sent_, offsets.tx, XDP_PGOFF_TX_RING, kSendRingSize,
             sizeof(xdp_desc));
}

bool XDPSocket::bind(u32 interface_index, u32 queue, XDPFrames frames) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = interface_index;
  address.sxdp_queue_id = queue;
  address.sxdp_flags = XDP_USE_NEED_WAKEUP;
  if (frames == XDPFrames::kSeveralBuffers) address.sxdp_flags |= XDP_USE_SG;
  return ::bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

void XDPSocket::give_all_chunks() {
  for (u32 i = 0; i < kReceiveChunks; ++i) fill_.put(u64{i} * kChunkSize);
  fill_.publish();
}

void XDPSocket::close() {
  socket_.reset();
  for (Mapping& memory : ring_memory_) memory = {};
  memory_ = {};
}

// --- out

std::span<u8> XDPSocket::begin_send() {
  if (slots_->free_count == 0) reap();
  if (slots_->free_count == 0) return {};
  const u32 slot = slots_->free[slots_->free_count - 1];
  return {at(kSendAt + u64{slot} * kSlotSize), kSlotSize};
}

void XDPSocket::end_send(std::size_t size) {
  if (size == 0) return;
  const u32 slot = slots_->free[--slots_->free_count];
  const u64 address = kSendAt + u64{slot} * kSlotSize;
  const u32 first = std::min(static_cast<u32>(size), kChunkSize);
  const u32 rest = static_cast<u32>(size) - first;
  CHECK(sent_.room() >= kChunksPerSlot);  // there are as many entries as chunks
  sent_.put({.addr = address, .len = first, .options = rest != 0 ? u32{XDP_PKT_CONTD} : 0});
  if (rest != 0) sent_.put({.addr = address + kChunkSize, .len = rest, .options = 0});
  slots_->chunks_left[slot] = rest != 0 ? 2 : 1;
}

// One call may send a part only; then it says EAGAIN, or EBUSY or ENOBUFS for a full queue.
void XDPSocket::flush() {
  sent_.publish();
  for (u32 i = 0; i < kMaxWakeups && sent_.is_pending() && sent_.needs_wakeup(); ++i)
    (void)::sendto(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
  reap();
}

void XDPSocket::reap() {
  for (u32 left = completed_.waiting(); left != 0; --left) {
    const u64 slot = (completed_.take() - kSendAt) / kSlotSize;
    CHECK(slot < kSendSlots && slots_->chunks_left[slot] != 0);
    if (--slots_->chunks_left[slot] == 0)
      slots_->free[slots_->free_count++] = static_cast<u16>(slot);
  }
  completed_.release();
}

// --- in

// Chunks go back to the kernel in refill(), the one of the frame that is polled last as well: the
// kernel only sees what was published.
std::span<const u8> XDPSocket::poll_frame() {
  if (received_.waiting() == 0) return {};
  const xdp_desc one = received_.take();
  if ((one.options & XDP_PKT_CONTD) != 0) return gather(one);
  fill_.put(one.addr & ~u64{kChunkSize - 1});
  return {at(one.addr), one.len};
}

std::span<const u8> XDPSocket::gather(xdp_desc one) {
  std::size_t size = 0;
  bool fits = true, more = true;
  while (more) {
    fits = fits && size + one.len <= gathered_->size();
    if (fits) std::memcpy(gathered_->data() + size, at(one.addr), one.len);
    size += one.len;
    fill_.put(one.addr & ~u64{kChunkSize - 1});
    more = (one.options & XDP_PKT_CONTD) != 0 && received_.waiting() != 0;
    if (more) one = received_.take();
  }
  return std::span<const u8>(*gathered_).first(fits ? size : 0);
}

void XDPSocket::refill() {
  received_.release();
  fill_.publish();
  if (fill_.needs_wakeup()) (void)::recvfrom(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

template class XDPRing<u64>;
template class XDPRing<xdp_desc>;

}  // namespace verbena::host
