// StreamConnector: the connections of an agent's lanes on iWARP devices, whose queue pairs only
// rdma_cm connects. RFC 5044, 7.1. The side of a link that connected dials; the other side listens.
//
// Contract: call poll() until it returns nullopt whenever descriptor() is readable. Never waits.
// Not thread-safe. It outlives its StreamEnds.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "agent/region.h"

namespace verbena::agent {

[[nodiscard]] bool has_streams(const coll::Rail& rail);

// The private data of a connection request: which lane of the listening agent it is for.
struct StreamRequest {
  static constexpr u64 kMagic = 0x315341414256;  // "VBAAS1"
  u64 magic = kMagic;
  u64 incarnation = 0;  // of the listening agent
  u64 lane = 0;         // a WorkId of it
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
  u64 lane_;  // a WorkId of this agent
  StreamQueuePair queue_pair_{};
  StreamRequest request_{};  // of an end that dials
};

struct StreamEvent {
  enum class Kind : u8 { kRequest, kUp, kDown };
  Kind kind = Kind::kDown;
  u64 lane = 0;                      // a WorkId of this agent
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
  // Returns nullopt if the agent has nothing to do.
  [[nodiscard]] std::optional<StreamEvent> take(rdma_cm_event_type type, rdma_cm_id* id,
                                                const StreamRequest& request);
  u64 incarnation_;
  rdma_event_channel* channel_ = nullptr;
  std::array<rdma_cm_id*, coll::kMaxRails> listeners_{};
};

}  // namespace verbena::agent
