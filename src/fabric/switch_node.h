// SwitchNode: the interface of any switch to a network. Switch is the Ethernet one,
// InfiniBandSwitch that of InfiniBand.
#pragma once

#include "base/check.h"
#include "base/time.h"
#include "fabric/path_log.h"

namespace verbena::fabric {

// Packets of an InfiniBand port as its PortCounters have them: without flow control packets; bytes
// without the VCRC. IBTA 16.1.3.5.
struct PacketCount {
  enum class Cast : u8 { kUnicast, kMulticast };
  u64 packets = 0, bytes = 0;
  u64 multicast = 0;  // of the packets
  void add(u32 size_bytes, Cast cast) {
    constexpr u32 kVCRC = 2;
    ++packets;
    bytes += size_bytes - kVCRC;
    if (cast == Cast::kMulticast) ++multicast;
  }
};

class SwitchNode {
 public:
  virtual ~SwitchNode() = default;

  virtual void on_arrival(u32 port, FrameIndex index) = 0;
  // The frame was lost on the link, and does not arrive.
  virtual void on_lost(u32 port, FrameIndex index) = 0;
  virtual void on_wake(u32 port) = 0;
  virtual void on_pause_timer(u32 /*port*/) {}
  // Prefetches the data that arrivals need into the cache.
  virtual void fetch() const = 0;
  // The link of the port, whose Port says so, has changed.
  virtual void on_link_down(u32 port) = 0;
  virtual void on_link_up(u32 port) = 0;
  // Asks the neighbour to pause, whatever there is room for, until asked for an end. Ethernet's.
  virtual void begin_stuck_pause(u32 /*port*/, u32 /*priority*/) { CHECK_UNREACHABLE(); }
  virtual void end_stuck_pause(u32 /*port*/, u32 /*priority*/) { CHECK_UNREACHABLE(); }

  [[nodiscard]] virtual u32 port_count() const = 0;
  // Returns whether frames of the priority (or virtual lane) wait at the port and have been blocked
  // since then or before.
  [[nodiscard]] virtual bool is_stuck(u32 port, u32 priority, Time since) const = 0;
  // Returns whether frames of the priority wait at the port that arrived by `ingress`.
  [[nodiscard]] virtual bool holds(u32 port, u32 priority, u32 ingress) const = 0;
  // Returns the most bytes that ever waited in one queue of the port, a frame that leaves at once
  // included.
  [[nodiscard]] virtual u32 longest_queue(u32 port) const = 0;
  // Returns the bytes in all queues of the port, now.
  [[nodiscard]] virtual u64 waiting_bytes(u32 port) const = 0;
  [[nodiscard]] virtual u64 sent_bytes(u32 port) const = 0;
  [[nodiscard]] virtual u64 marked_frames(u32 port) const = 0;
  // Returns how long, until now, the port had something to send and no credits. InfiniBand's.
  [[nodiscard]] virtual Duration waited_for_credits(u32 /*port*/, Time /*now*/) const { return {}; }
  [[nodiscard]] virtual PacketCount sent_packets(u32 /*port*/) const { return {}; }
  // Returns the packets that arrived by the port and had no path onward. Both are InfiniBand's.
  [[nodiscard]] virtual u64 dropped_packets(u32 /*port*/) const { return 0; }

  // Sets the log in which the switch notes the ports that it forwards by. It outlives the switch's
  // use of it.
  void set_path_log(PathLog* log) { path_log_ = log; }

 protected:
  PathLog* path_log_ = nullptr;
};

}  // namespace verbena::fabric
