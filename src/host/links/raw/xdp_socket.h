// XDPSocket: one AF_XDP socket on one queue of an interface, with the memory (UMEM) that frames
// come into and leave from, and its four rings. Linux, Documentation/networking/af_xdp.rst.
//
// The UMEM is cut into chunks of a page. The first kReceiveChunks go round: to the kernel in the
// fill ring, back with a frame in the receive ring. Behind them are kSendSlots slots of two chunks
// each, for one frame: to the kernel in the transmit ring, back in the completion ring. A frame
// longer than a chunk has two descriptors (XDP_USE_SG). Zero-copy where the driver has it: the
// kernel chooses. No allocation after construction.
#pragma once

#include <linux/if_xdp.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "host/links/raw/xdp_program.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "host/os/mapping.h"

namespace verbena::host {

// One of the rings: memory that the kernel and we write to in turn. The counters go on for ever and
// are taken modulo the size.
template <typename T>
class XDPRing {
 public:
  // `memory` maps a ring of `size` entries, a power of two, that lies as `offsets` says.
  void place(u8* memory, const xdp_ring_offset& offsets, u32 size);

  // As producer: what may be put, one entry's place, and all put so far made known.
  [[nodiscard]] u32 room() const;
  void put(const T& entry) { entries_[next_++ & mask_] = entry; }
  void publish();
  // As producer: the kernel has not taken all that was published.
  [[nodiscard]] bool is_pending() const;
  // As consumer.
  [[nodiscard]] u32 waiting() const;
  [[nodiscard]] T take() { return entries_[next_++ & mask_]; }
  void release();
  // The kernel wants a call before it goes on. XDP_USE_NEED_WAKEUP
  [[nodiscard]] bool needs_wakeup() const;

 private:
  u32 *producer_ = nullptr, *consumer_ = nullptr, *flags_ = nullptr;
  T* entries_ = nullptr;
  u32 size_ = 0, mask_ = 0;
  u32 next_ = 0;  // our own counter
};

class XDPSocket {
 public:
  static constexpr u32 kChunkSize = 4096;  // bytes; more needs huge pages
  static constexpr u32 kMaxFrameSize = 2 * kChunkSize;
  // The bytes of a received frame that fit a chunk. The kernel leaves headroom before them.
  static constexpr u32 kReceiveRoom = kChunkSize - 256;  // XDP_PACKET_HEADROOM

  [[nodiscard]] static Expected<XDPSocket> open(u32 interface_index, u32 queue, XDPFrames frames);

  [[nodiscard]] int fd() const { return socket_.get(); }

  // Room for one frame of at most kMaxFrameSize; empty: none is free now.
  [[nodiscard]] std::span<u8> begin_send();
  void end_send(std::size_t size);  // of the room that begin_send() gave last; 0: nothing is sent
  void flush();                     // bounded in time

  [[nodiscard]] bool has_received() const { return received_.waiting() != 0; }
  // One frame, good until the next call; empty: no more, or one that was too long for us.
  [[nodiscard]] std::span<const u8> poll_frame();
  void refill();  // gives the kernel the chunks back that were polled

  void close();

 private:
  static constexpr u32 kReceiveChunks = 2048, kSendSlots = 512, kChunksPerSlot = 2;
  static constexpr u32 kSendAt = kReceiveChunks * kChunkSize;  // bytes, in the UMEM
  static constexpr u32 kSlotSize = kChunksPerSlot * kChunkSize;
  static constexpr std::size_t kUMEMSize = kSendAt + std::size_t{kSendSlots} * kSlotSize;
  static constexpr u32 kSendRingSize = kSendSlots * kChunksPerSlot;

  struct Slots {  // for sending
    std::array<u16, kSendSlots> free;
    std::array<u8, kSendSlots> chunks_left{};  // that the kernel still has
    u32 free_count = kSendSlots;
  };

  XDPSocket() = default;
  [[nodiscard]] bool register_memory();
  [[nodiscard]] bool map_rings();
  [[nodiscard]] bool bind(u32 interface_index, u32 queue, XDPFrames frames);
  void give_all_chunks();
  void reap();
  [[nodiscard]] std::span<const u8> gather(xdp_desc first);
  [[nodiscard]] u8* at(u64 address) const { return memory_.data() + address; }

  Descriptor socket_;
  Mapping memory_;  // the UMEM; it goes after the socket
  std::array<Mapping, 4> ring_memory_;
  XDPRing<u64> fill_, completed_;
  XDPRing<xdp_desc> received_, sent_;
  std::unique_ptr<Slots> slots_;
  std::unique_ptr<std::array<u8, kMaxFrameSize>> gathered_;
};

}  // namespace verbena::host
