// PacketPort: Ethernet frames through an AF_PACKET socket: packet(7). Bursts of RoCEv2 go as one
// large frame with a virtio_net header (PACKET_VNET_HDR), which the interface or the kernel cuts
// into packets with Identifications 0, 1, 2, ...; what comes joined is cut here. No allocation
// after construction.
#pragma once

#include <sys/socket.h>

#include <array>
#include <memory>

#include "host/links/burst_assembler.h"
#include "host/links/link.h"
#include "host/links/raw/frame_parser.h"
#include "host/links/raw/frame_writer.h"
#include "host/links/raw/raw_port.h"
#include "host/links/raw/take_filter.h"
#include "host/links/raw/vnet_header.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

class PacketPort final : public RawPort {
 public:
  // `mtu`: of the interface, bytes. The counters outlive it.
  [[nodiscard]] static Expected<std::unique_ptr<PacketPort>> open(const TakenTraffic& taken,
                                                                  u32 mtu, LinkCounters& counters);

  void append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) override;
  [[nodiscard]] Trains takes() const override { return Trains::kYes; }
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return v1_count_ == 0 && assembler_.may_wait(); }
  [[nodiscard]] bool receive() override;
  [[nodiscard]] bool poll_frame(IngressFrame& out) override;
  [[nodiscard]] std::span<const int> descriptors() const override { return {&fd_, 1}; }
  void close() override { socket_.reset(); }
  // Takes other traffic from now on.
  [[nodiscard]] Expected<void> retake(const TakenTraffic& taken);
  [[nodiscard]] u32 receive_buffer_bytes() const;

 private:
  static constexpr u32 kMaxBatch = 8;      // frames of one recvmmsg()
  static constexpr u32 kMaxV1Frames = 32;  // of one sendmmsg(); the kernel cuts no RoCEv1
  static constexpr u32 kMaxBurstIOVs = BurstAssembler::kMaxIOVs + 2;  // and the headers
  static constexpr std::size_t kMaxJoinedSize = (1 << 16) + 256;      // of a frame; IP's is 16 bits
  static constexpr std::size_t kMaxFrameSize = 4096 + 256;            // of one packet

  struct Head {  // what goes before a burst, or a packet
    VNetHeader offload;
    std::array<u8, kMaxEnvelopeSize> headers;
    std::size_t headers_size = 0;
  };
  struct Sending {
    std::array<Head, BurstAssembler::kMaxBursts> heads;
    std::array<std::array<iovec, kMaxBurstIOVs>, BurstAssembler::kMaxBursts> iovs;
    std::array<mmsghdr, BurstAssembler::kMaxBursts> messages;
    std::array<std::array<u8, kMaxFrameSize>, kMaxV1Frames> v1;
    std::array<iovec, kMaxV1Frames> v1_iovs;
    std::array<mmsghdr, kMaxV1Frames> v1_messages;
    std::array<u8, BurstAssembler::kMaxBurstBytes> flat;  // one burst in one piece
  };
  struct Received {
    std::array<VNetHeader, kMaxBatch> offloads;
    std::array<std::array<iovec, 2>, kMaxBatch> iovs;
    std::array<mmsghdr, kMaxBatch> messages;
    std::array<std::array<u8, kMaxJoinedSize>, kMaxBatch> data;
  };

  PacketPort(Descriptor socket, const TakenTraffic& taken, u32 mtu, LinkCounters& counters);

  void append_v1(const EgressFrame& frame, const MAC& to);
  void append_v2(const EgressFrame& frame, const MAC& to, PSPSender* sealer);
  void flush_v1();
  void flush_v2();
  [[nodiscard]] EthernetPath path_to(const MAC& to) const {
    return {.source = own_, .destination = to, .vlan = vlan_};
  }
  void set_head(const Burst& burst, const MAC& to, u32 place, u32 udp_size, Head& head) const;
  void set_offload(const Burst& burst, Head& head) const;
  void on_refused(const Burst& burst, const MAC& to);
  void send_one_by_one(const Burst& burst, const MAC& to);
  [[nodiscard]] u32 max_segment_size(const EgressFrame& frame) const;
  [[nodiscard]] bool send_all(std::span<mmsghdr> messages, u32& sent);
  [[nodiscard]] bool wait_for_room();
  void open_next();

  Descriptor socket_;
  int fd_;
  MAC own_;
  std::optional<u16> vlan_;
  u16 udp_port_;
  u32 mtu_;
  LinkCounters& counters_;
  bool may_segment_ = true;  // false: the kernel has refused it (before 6.2)
  bool patient_ = true;      // once in a flush
  BurstAssembler assembler_;
  std::array<MAC, BurstAssembler::kMaxBursts> to_;  // of each burst
  EnvelopeCRC flow_;                                // of RoCEv1
  u32 v1_count_ = 0;
  std::unique_ptr<Sending> sending_;
  std::unique_ptr<Received> received_;
  u32 batch_ = 1, count_ = 0, next_ = 0;  // as DatagramReceiver's
  FrameParser parser_;
};

}  // namespace verbena::host
