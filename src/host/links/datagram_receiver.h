// DatagramReceiver: one socket on UDP port 4791, or PSP's. Takes datagrams in batches; a
// super-packet that the kernel put together (UDP_GRO), or never cut, comes out as the frames it is
// made of. No allocation after construction.
#pragma once

#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "device/port/frame.h"
#include "host/links/link.h"
#include "host/links/steady_source.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "wire/ib/bth.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

class DatagramReceiver {
 public:
  // Not yet bound: bind() joins the kernel's group of sockets on this port.
  [[nodiscard]] static Expected<DatagramReceiver> open(const GID& address, u32 interface_index,
                                                       u16 port = kRoCEv2Port);
  [[nodiscard]] Expected<void> bind();
  // For an `address` that is a multicast group: binds to it and joins the group on the interface.
  [[nodiscard]] Expected<void> join_group();

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] const GID& address() const { return address_; }
  [[nodiscard]] u32 buffer_bytes() const;  // what the kernel granted, in its own accounting

  // As in Link.
  [[nodiscard]] bool receive(LinkCounters& counters);
  [[nodiscard]] bool poll_frame(IngressFrame& out);
  // As in Link, of the datagram that is open.
  [[nodiscard]] QPN upcoming(u32 frames) const {
    const std::size_t at = (frames - 1) * segment_size_ + BTH::kDestQPAt;
    if (at + 3 > left_.size()) return {};
    return QPN{load_be24(left_.data() + at)};
  }
  // The source of all the last datagrams, if there is one.
  [[nodiscard]] const SteadySource& source() const { return source_; }
  void forget_source() { source_ = {}; }
  // Binds to the interface, and takes from now on what `source` sends to the address, in preference
  // to the socket that is only bound; again: what another sends. On failure nothing, and it is
  // closed. Its hop limit is taken for that of all that it sends.
  void follow(const DatagramSource& source);
  [[nodiscard]] bool follows() const { return followed_.has_value() && socket_.is_open(); }
  [[nodiscard]] bool follows(const IngressFrame& frame) const {  // whose source it is
    return follows() && frame.udp_source_port == followed_->port &&
           frame.source == followed_->address;
  }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  void close();
  // Closes the socket and opens another, not yet bound.
  [[nodiscard]] Expected<void> renew();

 private:
  static constexpr u32 kMaxBatch = 8;
  static constexpr std::size_t kBufferSize = 1 << 16;  // any UDP datagram fits
  static constexpr std::size_t kControlSize = 128;

  struct Buffers {
    std::array<mmsghdr, kMaxBatch> headers;
    std::array<iovec, kMaxBatch> iovs;
    std::array<sockaddr_storage, kMaxBatch> sources;
    struct alignas(cmsghdr) Control {
      std::array<u8, kControlSize> bytes;
    };
    std::array<Control, kMaxBatch> controls;
    std::array<std::array<u8, kBufferSize>, kMaxBatch> data;
  };

  DatagramReceiver(Descriptor socket, const GID& address, u32 interface_index, u16 port);
  void prepare(u32 count);
  void open_datagram(u32 index);
  [[nodiscard]] bool bind_to_interface();

  Descriptor socket_;
  GID address_;
  u32 interface_index_;
  u16 port_;
  std::unique_ptr<Buffers> buffers_;
  u32 batch_ = 1;             // how many are asked for: more while they come
  u32 count_ = 0, next_ = 0;  // datagrams of the batch; the next one to open
  std::span<const u8> left_;  // of the datagram that is open
  std::size_t segment_size_ = 0;
  IngressFrame frame_;  // what its segments have in common
  SteadySource source_;
  std::optional<DatagramSource> followed_;
};

}  // namespace verbena::host
