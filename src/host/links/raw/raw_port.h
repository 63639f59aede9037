// RawPort: how a RawLink puts Ethernet frames on its interface, and takes those for this process.
// Not thread-safe.
#pragma once

#include <span>

#include "device/port/frame.h"
#include "host/encryption/psp_sender.h"
#include "host/links/link.h"
#include "wire/eth/ethernet.h"

namespace verbena::host {

class RawPort {
 public:
  virtual ~RawPort() = default;

  // All as in Link; `to` is the neighbour that takes the frame; `sealer` as in BurstAssembler.
  virtual void append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) = 0;
  [[nodiscard]] virtual Trains takes() const = 0;
  virtual void flush() = 0;
  [[nodiscard]] virtual bool may_wait() const = 0;
  [[nodiscard]] virtual bool receive() = 0;
  [[nodiscard]] virtual bool poll_frame(IngressFrame& out) = 0;
  [[nodiscard]] virtual std::span<const int> descriptors() const = 0;
  virtual void close() = 0;  // and in a child after fork(): our copies
};

// The counters of a link that stands on another one.
[[nodiscard]] inline LinkCounters with_raw(const LinkCounters& below, const LinkCounters& own) {
  LinkCounters sum = below;
  sum.sent_frames += own.sent_frames;
  sum.sent_bursts += own.sent_bursts;
  sum.send_dropped += own.send_dropped;
  sum.segmentation_refused += own.segmentation_refused;
  sum.received_frames += own.received_frames;
  sum.received_datagrams += own.received_datagrams;
  sum.receive_dropped += own.receive_dropped;
  return sum;
}

}  // namespace verbena::host
