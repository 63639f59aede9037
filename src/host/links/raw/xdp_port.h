// XDPPort: Ethernet frames through AF_XDP sockets, one on each queue of the interface; an XDP
// program brings them what this process takes, before the kernel has looked at it. One process at a
// time can have it on an interface. Frames leave by the first queue, each on its own.
#pragma once

#include <memory>
#include <vector>

#include "host/links/link.h"
#include "host/links/raw/frame_parser.h"
#include "host/links/raw/frame_writer.h"
#include "host/links/raw/raw_port.h"
#include "host/links/raw/xdp_program.h"
#include "host/links/raw/xdp_socket.h"
#include "host/network/local_address.h"

namespace verbena::host {

class XDPPort final : public RawPort {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<XDPPort>> open(const TakenTraffic& taken,
                                                               const LocalAddress& address,
                                                               LinkCounters& counters);

  [[nodiscard]] Expected<void> retake(const TakenTraffic& taken) {
    return attachment_.retake(taken);
  }
  void append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) override;
  [[nodiscard]] Trains takes() const override { return Trains::kNo; }
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return !is_urgent_; }
  [[nodiscard]] bool receive() override;
  [[nodiscard]] bool poll_frame(IngressFrame& out) override;
  [[nodiscard]] std::span<const int> descriptors() const override { return descriptors_; }
  void close() override;

 private:
  static constexpr u32 kMaxBatch = 256;  // frames, between two refills

  XDPPort(XDPAttachment attachment, const TakenTraffic& taken, LinkCounters& counters)
      : attachment_(std::move(attachment)),
        own_(taken.mac),
        udp_port_(taken.udp_port),
        counters_(counters),
        parser_(taken.udp_port) {}
  [[nodiscard]] Expected<void> open_sockets(const LocalAddress& address, u32 queues,
                                            XDPFrames frames);
  void refill();
  [[nodiscard]] std::span<const u8> next_frame();

  XDPAttachment attachment_;
  MAC own_;
  u16 udp_port_;
  EnvelopeCRC flow_;
  LinkCounters& counters_;
  std::vector<XDPSocket> sockets_;
  std::vector<int> descriptors_;
  std::size_t polled_ = 0;  // socket
  u32 batch_left_ = 0;
  bool any_appended_ = false, is_urgent_ = false;  // and not flushed
  FrameParser parser_;
};

}  // namespace verbena::host
