// MADRouter: finds the process of this host that a packet to QP 1 is for. All processes on an
// address share its QP 1; the kernel gives each such packet to any one of them. Requests go to the
// process that listens, all other packets to the one whose slot is in the Communication ID. A
// packet that no process claims is ours: our CMAgent answers accordingly. A request that finds no
// listener is kept for a moment before it is refused: here a connection takes so little time that a
// program which starts to listen after its peer was told to connect (perftest does) would be late.
// A packet is forwarded once: a process that gets it from another process takes it as its own. The
// kernel queues about ten datagrams between two processes (net.unix.max_dgram_qlen). Packets beyond
// that wait here, because a peer whose packet is lost sends it again only after a second.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "connect/mad_route.h"
#include "device/port/frame.h"
#include "host/cm/port_directory.h"
#include "host/sharing/process_channel.h"
#include "wire/ib/mad.h"

namespace verbena::host {

class MADRouter {
 public:
  enum class Outcome : u8 { kOurs, kHandedOn, kKept, kDropped };
  static constexpr Duration kGrace = ms(400), kLookInterval = ms(5);
  static constexpr std::size_t kMaxKept = 64;  // what is beyond is refused at once
  static constexpr Duration kRetryInterval = us(200);
  static constexpr std::size_t kMaxWaiting = 2048;

  // The channel outlives it.
  explicit MADRouter(ProcessChannel& channel) : channel_(channel) {}
  // With a directory of one's own.
  MADRouter(ProcessChannel& channel, PortDirectory ports)
      : channel_(channel), ports_(std::move(ports)) {}

  // `frame`: to QP 1, from the network. kDropped: its process has no room for it, nor have we.
  [[nodiscard]] Outcome route(const IngressFrame& frame, Time now);
  // Takes a kept frame that is ours now, valid until the next call. Returns false if there is none.
  [[nodiscard]] bool poll_kept(IngressFrame& out, Time now);
  [[nodiscard]] Time next_timer() const { return std::min(next_look(), next_retry()); }
  void close() { ports_.reset(); }

 private:
  static constexpr std::size_t kMADAt = BTH::kSize + DETH::kSize;
  static constexpr std::size_t kPacketSize = kMADAt + kMADSize + kICRCSize;
  struct Copy {
    explicit Copy(const IngressFrame& original) : frame(original) {
      std::ranges::copy(original.transport, transport.begin());
    }
    [[nodiscard]] IngressFrame get() const {
      IngressFrame copied = frame;
      copied.transport = transport;
      return copied;
    }
    IngressFrame frame;  // but its transport
    std::array<u8, kPacketSize> transport;
  };
  struct Kept {
    Copy copy;
    ServiceId service;
    Time until;
  };
  struct Waiting {
    Copy copy;
    u32 slot;
    Time until;
  };

  [[nodiscard]] Time next_look() const { return kept_.empty() ? Time::never() : next_look_; }
  [[nodiscard]] Time next_retry() const { return waiting_.empty() ? Time::never() : next_retry_; }
  [[nodiscard]] Outcome wait(u32 slot, const IngressFrame& frame, Time now);
  [[nodiscard]] bool look_for_listeners(IngressFrame& out, Time now);
  [[nodiscard]] bool retry(IngressFrame& out, Time now);

  [[nodiscard]] Outcome to_listener(ServiceId service, const IngressFrame& frame, Time now);
  [[nodiscard]] Outcome keep(ServiceId service, const IngressFrame& frame, Time now);
  [[nodiscard]] Outcome to_slot(u32 slot, const IngressFrame& frame, Time now);
  void to_others_at_destination(const IngressFrame& frame, Time now);
  [[nodiscard]] PortTable read_ports();

  ProcessChannel& channel_;
  std::optional<PortDirectory> ports_;  // opened when it is first needed
  std::vector<Kept> kept_;
  std::deque<Waiting> waiting_;
  Time next_look_, next_retry_;
  std::optional<Copy> polled_;
};

}  // namespace verbena::host
