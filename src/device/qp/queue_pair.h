// QueuePair: one QP's attributes, receive queue and engine, and its places in the device's lists.
// IBTA Vol 1, 10.2.4, 10.3. It has no behaviour of its own: EngineRunner drives the engine, and
// each list below is touched only by the part that it names.
#pragma once

#include <memory>
#include <optional>

#include "congestion/congestion_control.h"
#include "device/intrusive_list.h"
#include "device/objects/event_queue.h"
#include "device/qp/qp_copies.h"
#include "device/qp/qp_init.h"
#include "device/qp/qp_traffic.h"
#include "transport/datagram_engine.h"
#include "transport/stream_engine.h"

namespace verbena {

class RCEngine;

class QueuePair {
 public:
  // No CQE and no packet comes of it before it has an engine.
  QueuePair(const QPInit& granted, const QPAttributes& initial);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Returns the parts to build this QP's engine from. Call it after `congestion` is set up.
  [[nodiscard]] EngineParts parts(ProtectionTable& memory);
  void set_engine(std::unique_ptr<DatagramEngine> made) {
    datagrams = made.get();
    engine = std::move(made);
  }
  void set_engine(std::unique_ptr<StreamEngine> made) {
    stream = made.get();
    engine = std::move(made);
  }

  const QPInit init;  // limits as granted
  QPAttributes attributes;
  std::optional<ReceiveQueue> own_receive_queue;  // none with an SRQ; of no use to XRC
  QPCopies copies;
  std::unique_ptr<Engine> engine;
  DatagramEngine* datagrams = nullptr;  // the same, if its wire side is packets,
  StreamEngine* stream = nullptr;       // or if it is a byte stream
  u64 stream_number = 0;                // Streams: of the stream that it has; 0: none
  RCEngine* rc = nullptr;  // the same, of an RC QP: for the common case, without virtual calls
  QPTraffic traffic;
  // The control of what this QP sends; nullopt if it sends as fast as it can. EngineRunner
  std::optional<CongestionControl> congestion;

  bool notify_when_drained = false;  // asked for in RTS to SQD. IBTA 10.3.1.5
  EventSource events{.qp = this};    // AsyncEventQueue
  ListLink<QueuePair> sending;       // EgressScheduler
  static constexpr u32 kNoTimer = ~u32{0};
  u32 timer_position = kNoTimer;  // TimerQueue
  bool timer_armed = false;       // EngineRunner: when it asked last
  ListLink<QueuePair> cnp_due;    // CNPQueue
  Time next_cnp_allowed;          // CNPQueue

  ListLink<QueuePair> acknowledging;  // EgressScheduler
  u32 pacing_position = kNoTimer;     // EgressScheduler: set while it waits for next_send
  bool send_paused = false;           // EgressScheduler: by the driver
  bool paced = false;                 // Pacer: the rate of `congestion` counts
  bool wait_moves = false;            // Pacer: when the rate changes
  u32 wait_bytes = 0;                 // Pacer: of the packet that is waited for
  Time wait_began;                    // Pacer
  Time next_send;                     // Pacer
  Time held_until;                    // EgressScheduler
};

// Whether packets go to and come from one peer only.
constexpr bool is_connected(QPType type) {
  switch (type) {
    case QPType::kRC:
    case QPType::kUC:
    case QPType::kXRCInitiator:
    case QPType::kXRCTarget: return true;
    case QPType::kUD:
    case QPType::kRawPacket: return false;
  }
  CHECK_UNREACHABLE();
}

constexpr bool is_xrc(QPType type) {
  return type == QPType::kXRCInitiator || type == QPType::kXRCTarget;
}

}  // namespace verbena
