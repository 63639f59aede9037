// StreamConnector: the connections of queue pairs on iWARP devices, which only rdma_cm connects.
// RFC 5044, 7.1. One side of a connection dials; the other listens. A lane is a number that the
// owner gives a queue pair.
//
// Contract: call poll() until it returns nullopt whenever descriptor() is readable. Never waits.
// Not thread-safe. It outlives its StreamEnds.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "communicator/verbs/rail.h"

namespace verbena::coll {

[[nodiscard]] bool has_streams(const Rail& rail);

// The private data of a connection request: which lane of the listening side it is for.
struct StreamRequest {
  static constexpr u64 kMagic = 0x315341414256;  // "VBAAS1"
  u64 magic = kMagic;
  u64 incarnation = 0;  // of the listening side: a number that tells it from others
  u64 lane = 0;         // of the listening side
};

// The part of a queue pair in a connection.
struct StreamQueuePair {
  u32 qp_num = 0;
  u8 reads = 1;
};

// One end of a connection, or of a request for one. Its destruction ends the connection.
class StreamEnd {
 public:
  StreamEnd(rdma_cm_id* id, u64 lane) : id_(id), lane_(lane) { id_->context = this; }
  ~StreamEnd() { rdma_destroy_id(id_); }
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  // Answers a request that has arrived. `lane`: the number that events name.
  [[nodiscard]] bool accept(const StreamQueuePair& queue_pair, u64 lane);

 private:
  friend class StreamConnector;
  [[nodiscard]] bool request_connection();
  rdma_cm_id* id_;
  u64 lane_;  // of this side
  StreamQueuePair queue_pair_{};
  StreamRequest request_{};  // of an end that dials
};

struct StreamEvent {
  enum class Kind : u8 { kRequest, kUp, kDown };
  Kind kind = Kind::kDown;
  u64 lane = 0;                      // of this side
  std::unique_ptr<StreamEnd> end{};  // of kRequest: dropping it rejects the request
};

class StreamConnector {
 public:
  // Listens at each rail that is an iWARP device.
  [[nodiscard]] static Expected<std::unique_ptr<StreamConnector>> open(Rails rails,
                                                                       u64 incarnation);
  ~StreamConnector();
  StreamConnector(const StreamConnector&) = delete;
  StreamConnector& operator=(const StreamConnector&) = delete;

  [[nodiscard]] int descriptor() const { return channel_->fd; }
  // Where the rail listens; 0: nowhere.
  [[nodiscard]] u16 port(std::size_t rail) const;

  struct Target {
    std::string from{}, host{};
    u16 port = 0;
    StreamRequest request{};
  };
  [[nodiscard]] Expected<std::unique_ptr<StreamEnd>> dial(const Target& target,
                                                          const StreamQueuePair& queue_pair,
                                                          u64 lane);
  [[nodiscard]] std::optional<StreamEvent> poll();

 private:
  explicit StreamConnector(u64 incarnation) : incarnation_(incarnation) {}
  [[nodiscard]] Expected<void> listen(std::size_t rail, const std::string& host);
  // Returns nullopt if the owner has nothing to do.
  [[nodiscard]] std::optional<StreamEvent> take(rdma_cm_event_type type, rdma_cm_id* id,
                                                const StreamRequest& request);
  u64 incarnation_;
  rdma_event_channel* channel_ = nullptr;
  std::array<rdma_cm_id*, kMaxRails> listeners_{};
};

}  // namespace verbena::coll
