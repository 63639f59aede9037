// Switch: an Ethernet switch without loss: a shared buffer with PFC, ECN marking, strict and round
// robin queues, several equal ways. IEEE 802.1Q (8.6 forwarding, 36 PFC), RFC 3168 (CE).
#pragma once

#include <vector>

#include "base/prng.h"
#include "fabric/egress_queues.h"
#include "fabric/marking.h"
#include "fabric/pfc.h"
#include "fabric/port.h"
#include "fabric/routes.h"
#include "fabric/shared_buffer.h"
#include "fabric/spreading.h"
#include "fabric/switch_node.h"
#include "fabric/telemetry.h"

namespace verbena::fabric {

// ForwardingConfig: when a frame that has arrived is in the queue of its output. Cutting through
// (Kermani and Kleinrock, Virtual Cut-Through, 1979) takes only the time to read addresses and
// ports, where the output is not faster than the input; else the output would run out of data. A
// frame that is cut through cannot be checked first (FCS): a real switch passes errors on; here
// links lose the frames with errors.
struct ForwardingConfig {
  static constexpr u16 kHeadBytes = 64;  // Ethernet to BTH, 54, in whole cells
  enum class Mode : u8 { kStoreAndForward, kCutThrough };
  Mode mode = Mode::kStoreAndForward;
  // Additional latency of each frame: lookup and crossbar. At most 4 ms. Scenarios use the latency
  // of current switches (technology.h). A frame takes no room in the meantime.
  Duration latency{};
};

enum class MarkAt : u8 { kEnqueue, kDequeue };

struct SwitchConfig {
  SharedBufferConfig buffer{};
  PFCConfig pfc{};
  QueueDiscipline discipline{};
  ForwardingConfig forwarding{};
  MarkAt mark_at = MarkAt::kDequeue;
  SpreadingConfig spreading{};
  TelemetryConfig telemetry{};
  u32 hash_seed = 0;
  u64 seed = 1;  // of random choices
};

struct SwitchPortConfig {
  SharedBuffer::PortConfig buffer{};
  MarkingConfig marking{};
};

class Switch final : public SwitchNode {
 public:
  // `ports`: the switch's own, which are numbered `first_port` .. of all.
  Switch(Domain& domain, const SwitchConfig& config, NodeIndex node, std::span<Port> ports,
         u32 first_port, std::vector<SwitchPortConfig> port_configs, const Routes& routes,
         const std::vector<u32>& addresses);

  void on_arrival(u32 port, FrameIndex index) override;
  void on_lost(u32 /*port*/, FrameIndex index) override { domain_.frames.give_back(index); }
  void fetch() const override;
  void on_wake(u32 port) override;
  void on_pause_timer(u32 port) override;
  void on_link_down(u32 port) override;
  void on_link_up(u32 port) override;
  void begin_stuck_pause(u32 port, u32 priority) override;
  void end_stuck_pause(u32 port, u32 priority) override;

  [[nodiscard]] u32 port_count() const override { return static_cast<u32>(ports_.size()); }
  [[nodiscard]] bool is_stuck(u32 port, u32 priority, Time since) const override;
  [[nodiscard]] bool holds(u32 port, u32 priority, u32 ingress) const override;
  [[nodiscard]] u32 longest_queue(u32 port) const override { return sides_[port].longest_queue; }
  [[nodiscard]] u64 waiting_bytes(u32 port) const override {
    return sides_[port].queues.bytes_of_all();
  }
  [[nodiscard]] u64 sent_bytes(u32 port) const override { return sides_[port].sent_bytes; }
  [[nodiscard]] u64 marked_frames(u32 port) const override { return sides_[port].marks; }

 private:
  struct alignas(64) Side {  // one port's, that each frame needs
    EgressQueues queues;
    u32 longest_queue = 0;
    u8 storming = 0;  // priorities whose pauses are not heeded, a bit each: the watchdog's
    u64 sent_bytes = 0;
    u64 marks = 0;
    MarkingConfig marking;
  };
  struct Rare {  // used for pauses and averages only
    std::array<AverageLength, kPriorities> average;
    std::array<Time, kPriorities> paused_until{};  // by the neighbour; never(): until it resumes
    std::array<Time, kPriorities> paused_since{};  // without interruption
    std::array<Time, kPriorities> ask_again{};     // of the neighbour, to pause
    u8 stuck = 0;   // priorities that it never lets go on, a bit each
    u8 asking = 0;  // priorities, a bit each
  };

  void on_pause_frame(u32 port, const Frame& frame);
  static constexpr u32 kNoWay = ~u32{0};
  u32 way_of(const Frame& frame);
  void wait_for_rest(u32 port, FrameIndex index);
  bool admit(u32 port, Frame& frame);
  bool drops_early(u32 port, const Frame& frame);
  bool would_mark(u32 port, const Frame& frame, u32 bytes);
  void drop(FrameIndex index, u64& counter);
  void enqueue(u32 port, FrameIndex index);
  void transmit(u32 port);
  void put_on_wire(u32 port, FrameIndex index);
  void leave(const Frame& frame);
  void pass_on(u32 port, FrameIndex index);
  void mark(u32 port, Frame& frame, u32 bytes);  // in its queue
  void pause(u32 port, u32 priority, Time until);
  void resume(u32 port, u32 priority);
  void send_on(u32 port);
  void watch(u32 port, u32 priority);
  void flush(u32 port, u32 queue, u64& counter);
  std::span<const u16> those_up(std::span<const u16> ways);
  bool is_lossless(u32 priority) const;
  void ask_to_pause(u32 port, u32 priority, u16 quanta);

  Domain& domain_;
  const SwitchConfig config_;
  const NodeIndex node_;
  const std::span<Port> ports_;
  const u32 first_port_;
  const Routes& routes_;
  const std::vector<u32>& addresses_;  // of all nodes, for the hash
  PRNG prng_;
  Spreading spreading_;
  SharedBuffer buffer_;
  std::vector<Side> sides_;
  std::vector<Rare> rare_;
  u32 ports_down_ = 0;
  std::vector<u16> ways_up_;  // of the frame being looked at, while a port is down
};

}  // namespace verbena::fabric
