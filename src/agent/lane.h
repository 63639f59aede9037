// Lane: one queue pair of a link, which is replaced when it fails. A generation is one queue pair
// and its partner on the other side.
//
//   kNew --offer--> kOffered --peer's offer of this generation--> kConnected --peer ready--> kUp
//   kUp, kConnected --error, or peer's offer of a later one--> kDraining --flushed--> kOffered
//
// On an iWARP device kConnecting lies between kOffered and kConnected: one side dials, the other
// accepts. There a WRITE or SEND completes when TCP has it, so only READs complete requests: the
// response to a READ follows the placement of all that was sent before. RFC 5040, 5.5. A batch that
// does not end with a READ gets one of no bytes.
//
// An offer says that the queue pair of the generation before exists no longer. So when both offers
// are there, no packet of it can change memory, and its requests may be repeated elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/region.h"
#include "communicator/verbs/stream_connector.h"
#include "transfer/flow.h"

namespace verbena::agent {

struct LaneLimits {
  u32 requests = 128;
};

// The contents of a wr_id.
struct WorkId {
  u32 link = 0, lane = 0, generation = 0;
  bool is_receive = false;
  u64 number = 0;  // sequence of a request, or slot
  static constexpr u64 kNumberMask = (u64{1} << 36) - 1;
  [[nodiscard]] constexpr u64 value() const {
    return u64{link & 0xffff} << 48 | u64{lane & 0x1f} << 43 | u64{is_receive} << 42 |
           u64{generation & 0x3f} << 36 | (number & kNumberMask);
  }
  [[nodiscard]] static constexpr WorkId of(u64 value) {
    return {.link = static_cast<u32>(value >> 48),
            .lane = static_cast<u32>(value >> 43 & 0x1f),
            .generation = static_cast<u32>(value >> 36 & 0x3f),
            .is_receive = (value >> 42 & 1) != 0,
            .number = value & kNumberMask};
  }
};

// Registered memory of one lane's notifications: slots to receive, then to send.
struct LaneSlots {
  static constexpr u32 kReceives = 32;
  static constexpr u32 kSends = 2 * kReceives;
  static constexpr u32 kBytes = 4096 + 64;
  static constexpr u64 kTotalBytes = u64{kReceives + kSends} * kBytes;
  u8* base = nullptr;
  u32 lkey = 0;
  [[nodiscard]] u8* receive(u64 slot) const { return base + slot * kBytes; }
  [[nodiscard]] u8* send(u64 slot) const { return base + (kReceives + slot) * kBytes; }
};

// The contents of an offer: what the other side needs to connect.
struct LaneAddress {
  coll::QPAddress qp{};
  // The address of an iWARP device; port 0 on other devices.
  std::string host{};
  u16 port = 0;
  u64 work_id = 0;  // of the lane, for StreamRequest
};

// How a lane on an iWARP device gets its connection.
struct LaneStreams {
  enum class Role : u8 { kNone, kDials, kAccepts };
  coll::StreamConnector* connector = nullptr;
  Role role = Role::kNone;  // kNone: another device
  u16 port = 0;             // where this side listens
  u64 peer_incarnation = 0;
};

class Lane {
 public:
  enum class State : u8 { kNew, kOffered, kConnecting, kConnected, kUp, kDraining };

  Lane(const coll::Rail& rail, WorkId id, LaneSlots slots, LaneLimits limits, LaneStreams streams)
      : rail_(rail), id_(id), slots_(slots), limits_(limits), streams_(streams) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] u32 generation() const { return id_.generation; }
  [[nodiscard]] const LaneAddress& address() const { return address_; }
  [[nodiscard]] bool is_stream() const { return streams_.role != LaneStreams::Role::kNone; }
  [[nodiscard]] bool is_of(const WorkId& work) const {
    return work.generation == (id_.generation & 0x3f);
  }

  // A queue pair of that generation, with its receives posted: kOffered.
  [[nodiscard]] Expected<void> offer(u32 generation);
  // kConnected, or kConnecting.
  [[nodiscard]] Expected<void> connect(const LaneAddress& remote, const std::string& who);
  // The peer's request for a connection. Returns false if it cannot be accepted.
  [[nodiscard]] bool on_request(std::unique_ptr<coll::StreamEnd> end);
  void mark_connected() { state_ = State::kConnected; }
  void mark_up() { state_ = State::kUp; }
  // Flushes what is outstanding: kDraining.
  void break_off();
  // All that was outstanding came back.
  [[nodiscard]] bool is_drained() const { return sends_ == 0 && receives_ == 0; }

  // A request of a READ or WRITE joins the batch; flush() posts it. Keys are those of the rails.
  void add(const transfer::Request& request, u32 lkey, u32 rkey);
  void add_message(u64 sequence, u64 slot, u32 bytes);
  [[nodiscard]] bool flush();
  [[nodiscard]] bool has_batch() const { return !batch_.empty(); }

  void on_completion(const WorkId& work);
  // Whether a successful request of that kind says that it, and all before it, are done.
  [[nodiscard]] bool is_final(ibv_wc_opcode opcode) const {
    return !is_stream() || opcode == IBV_WC_RDMA_READ;
  }
  [[nodiscard]] u64 last_sequence() const { return last_sequence_; }
  void post_receive(u64 slot);
  [[nodiscard]] const LaneSlots& slots() const { return slots_; }

 private:
  void destroy();
  ibv_send_wr& append(u64 sequence, u64 address, u32 bytes, u32 lkey);
  void confirm_batch();
  [[nodiscard]] Expected<void> connect_qp(const coll::QPAddress& remote, const std::string& who);
  [[nodiscard]] Expected<void> dial(const LaneAddress& remote, const std::string& who);
  [[nodiscard]] bool accept();
  [[nodiscard]] u32 send_room() const;
  [[nodiscard]] coll::StreamQueuePair stream_queue_pair() const {
    return {.qp_num = qp_->qp_num, .reads = rail_.reads()};
  }
  const coll::Rail& rail_;
  WorkId id_;
  LaneSlots slots_;
  LaneLimits limits_;
  LaneStreams streams_;
  State state_ = State::kNew;
  ibv_qp* qp_ = nullptr;
  std::unique_ptr<coll::StreamEnd> stream_{};
  LaneAddress address_{};
  u64 last_sequence_ = 0;         // that was posted
  u32 sends_ = 0, receives_ = 0;  // outstanding
  std::vector<ibv_send_wr> batch_{};
  std::vector<ibv_sge> elements_{};
};

}  // namespace verbena::agent
