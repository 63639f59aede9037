// OutgoingRings: the rings from an adapter to processes of this host: the ring (frame_ring.h) in
// each of them that is for us, and the doorbell that wakes them. RC packets only: both ends of a
// connection know each other's process before the first packet. A packet that finds no room is
// lost.
// An acknowledgement goes into the ring only with a later packet, or when it is published. Until
// then a later one of its QP replaces it, and a SEND can carry it (RingHeaders). So it may be held
// back for a reply: hold_acknowledgements(). Not thread-safe; the adapter's lock guards it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "explain/packet_history.h"
#include "host/local/frame_ring.h"
#include "host/local/local_processes.h"
#include "host/os/quick_clock.h"
#include "host/sharing/qpn_slot.h"
#include "transport/local/local_packets.h"

namespace verbena::host {

class OutgoingRings final : public LocalPackets {
 public:
  explicit OutgoingRings(LocalProcesses& processes) : processes_(processes) {}

  [[nodiscard]] bool take(const QPAttributes& qp, const TxPacket& packet) override;
  [[nodiscard]] bool send(const QPAttributes& qp, const LocalSend& send) override;
  [[nodiscard]] bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) override;
  // Does the same for a frame. Returns false if the frame is for elsewhere.
  [[nodiscard]] bool take(const EgressFrame& frame);
  void flush() override;  // but for what is held back
  void publish();
  // Nothing is taken any more.
  void close() { is_closed_ = true; }
  // Where to note each packet that is no frame, at the time that `clock` told last. nullptr:
  // nowhere.
  void note_in(explain::PacketHistory* history, const QuickClock& clock) {
    history_ = history;
    clock_ = &clock;
  }

  // Until publish(), flush() leaves them where they are if there is nothing else.
  void hold_acknowledgements() { holds_acknowledgements_ = true; }
  // The same, where some were taken since the last question, and nothing else; otherwise false.
  [[nodiscard]] bool hold_acknowledgements_alone() {
    if (has_others_ || !taken_.acknowledgements || taken_.requests) return false;
    taken_ = {};
    return holds_acknowledgements_ = true;
  }
  struct Taken {
    bool acknowledgements = false, requests = false;  // as packets
  };
  // Since the last question.
  [[nodiscard]] Taken take_taken() { return std::exchange(taken_, {}); }

  // Returns true if a packet taken as a frame cannot be piggybacked on a reply.
  [[nodiscard]] bool is_urgent() const { return is_urgent_; }
  [[nodiscard]] u64 sent() const { return sent_; }
  [[nodiscard]] u64 dropped() const { return dropped_; }

 private:
  struct Waiting {
    bool is_there = false;
    u8 traffic_class = 0;
    FrameRing::Addresses addresses{};
    RingHeaders headers{};
  };
  struct Peer {
    std::shared_ptr<ProcessMemory> process;  // nullptr: none on this host
    Mapping memory;
    std::optional<FrameRingWriter> ring;
    GID known{};                // one that the peer has
    u32 frames_until_look = 0;  // for a peer, or for a ring
    bool is_unflushed = false;
    Waiting acknowledgement;  // the last of all, not in the ring yet
  };

  [[nodiscard]] Peer* peer_of(QPN dest_qp, const GID& destination);
  [[nodiscard]] bool is_here(u32 slot, Peer& to);
  [[nodiscard]] static bool is_at(const GID& gid, Peer& to);
  [[nodiscard]] static bool has_ring(Peer& to);
  void note(const QPAttributes& qp, RingHeaders headers, u32 payload_bytes, u32 packets);
  template <typename Write>
  [[nodiscard]] FrameRing::Header* put(Peer& to, const FrameRing::Addresses& addresses,
                                       u32 body_bytes, u32 packets, const Write& write);
  void put_acknowledgement(Peer& to);
  void note_unflushed(Peer& to);
  void publish(Peer& to);
  void publish_records(Peer& to);

  LocalProcesses& processes_;
  std::array<Peer, kLastSlot + 1> to_;  // by slot
  std::vector<u32> unflushed_;          // slots
  explain::PacketHistory* history_ = nullptr;
  const QuickClock* clock_ = nullptr;  // set when history_ is
  u64 sent_ = 0, dropped_ = 0;
  bool is_urgent_ = false;  // of what is not flushed yet
  Taken taken_;
  bool has_others_ = false;  // than acknowledgements, not published yet
  bool holds_acknowledgements_ = false;
  bool is_closed_ = false;
};

}  // namespace verbena::host
