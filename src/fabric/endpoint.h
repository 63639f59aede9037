// Endpoint: what a network asks of a computer at the end of a link, whatever that speaks: it takes
// frames from the link, sends frames of its own, and has one end of each of its connections.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/rate.h"
#include "base/time.h"
#include "base/types.h"
#include "fabric/frame.h"
#include "fabric/switch_node.h"
#include "fabric/topology.h"

namespace verbena::fabric {

class FPDUPipe;  // tcp/fpdu_pipe.h

// An end of a connection, as its host numbers them.
using EndNumber = u32;
inline constexpr EndNumber kNoEnd = ~EndNumber{0};

// Repairs: counters of the work that a transport had to repeat.
struct Repairs {
  u64 retransmissions = 0;  // packets
  u64 timeouts = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // `port` is the host's own number of a port.
  virtual void on_arrival(u32 port, FrameIndex index) = 0;
  virtual void on_lost(u32 port, FrameIndex index) = 0;  // the frame was lost on the link
  // Prefetches the data that an arrival needs into the cache, as Device::fetch() does.
  virtual void fetch(u32 step, FrameIndex index) const = 0;
  virtual void on_wake() = 0;
  virtual void on_own_timer() = 0;
  virtual void on_device_timer() = 0;

  // The link of the port, whose Port says so, has changed.
  virtual void on_link_down(u32 port) = 0;
  virtual void on_link_up(u32 port) = 0;
  virtual void on_routes_changed() {}
  // Asks the port's switch to pause until asked for an end.
  virtual void begin_stuck_pause(u32 port, u32 priority) = 0;
  virtual void end_stuck_pause(u32 port, u32 priority) = 0;

  // --- connections. Each is used one way, and has an end at both hosts.
  struct Connection {
    NodeIndex peer = 0;
    EndNumber peer_end = 0;
    RKey peer_key{};                            // where the transport writes to memory
    u16 source_port = 0, destination_port = 0;  // 0: as the transport has them
    u8 priority = 0;
    std::shared_ptr<FPDUPipe> pipe;  // the peer's too, in the direction in which it is used
  };
  // Returns a pipe for the bytes that the frames of a connection do not carry; nullptr if there are
  // none.
  [[nodiscard]] virtual std::shared_ptr<FPDUPipe> make_pipe() const { return nullptr; }
  // For so many messages under way, sent and received.
  [[nodiscard]] virtual EndNumber create_end(u32 sends, u32 receives) = 0;
  virtual void connect(EndNumber end, const Connection& connection) = 0;
  virtual void destroy_end(EndNumber end) = 0;
  [[nodiscard]] virtual RKey memory_key() const = 0;
  // The number of the peer's end of a QP that is connected, or was. RoCE's.
  [[nodiscard]] virtual QPN peer_of(QPN /*qpn*/) const { return {}; }
  // Returns the rate at which the end may send now, by its congestion control; nullopt if it has
  // none.
  [[nodiscard]] virtual std::optional<Rate> rate_of(EndNumber end, Time now) const = 0;

  // Returns the UDP source port of the packets that the connected end sends, as switches see it.
  [[nodiscard]] virtual u16 source_port_of(EndNumber end) const = 0;
  // Sets the log in which the host notes the ports that it sends by.
  void set_path_log(PathLog* log) { path_log_ = log; }

  // --- flows
  // Sends so many bytes to the peer. At its end the flow is finished().
  virtual void write(EndNumber end, u64 bytes, u32 flow) = 0;
  // Expects such a flow at this end. Returns true if the program of this end reads slowly: then the
  // flow is finished() here, when the program has read it all. Otherwise it is finished() at its
  // sender, with the last acknowledgement.
  [[nodiscard]] virtual bool expect_flow(EndNumber /*end*/, u64 /*bytes*/, u32 /*flow*/) {
    return false;
  }
  // Returns how many messages write() makes of them.
  [[nodiscard]] virtual u32 messages_of(u64 bytes) const = 0;

  // --- messages of connections that stay
  struct Message {
    u32 connection = 0;
    u32 word = 0;          // of what arrived
    bool arrived = false;  // here; else it was sent from here, and is acknowledged
  };
  virtual void expect(EndNumber end, u32 messages, u32 connection) = 0;
  virtual void send_message(EndNumber end, u32 bytes, u32 connection, u32 word) = 0;

  // --- what has come of it. The caller takes it away.
  [[nodiscard]] std::vector<u32>& finished() { return finished_; }  // flows, acknowledged
  [[nodiscard]] std::vector<u32>& failed() { return failed_; }      // flows that were given up
  [[nodiscard]] std::vector<Message>& messages() { return messages_; }

  [[nodiscard]] virtual u64 sent_bytes(u32 port) const = 0;  // in frames
  [[nodiscard]] virtual Repairs repairs() const = 0;
  // Returns how long, until now, it had packets and no credits for any. InfiniBand's.
  [[nodiscard]] virtual Duration waited_for_credits(Time /*now*/) const { return {}; }
  [[nodiscard]] virtual PacketCount sent_packets() const { return {}; }

 protected:
  PathLog* path_log_ = nullptr;
  std::vector<u32> finished_, failed_;
  std::vector<Message> messages_;
};

}  // namespace verbena::fabric
