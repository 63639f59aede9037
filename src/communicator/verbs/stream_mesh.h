// StreamMesh: connects this rank's queue pairs on iWARP devices with those of all other ranks. Of
// two ranks the higher one dials. The connections last as long as the mesh.
//
// Contract: every rank opens its mesh before any calls connect().
#pragma once

#include <map>

#include "communicator/verbs/connection.h"
#include "communicator/verbs/stream_connector.h"

namespace verbena::coll {

// The data that another rank needs to connect with this one.
struct StreamPeer {
  u64 incarnation = 0;                 // of its mesh
  std::vector<QPAddress> addresses{};  // of its queue pairs to this rank, for each rail
};

class StreamMesh {
 public:
  // `incarnation`: a number that tells this rank of this job from others.
  [[nodiscard]] static Expected<std::unique_ptr<StreamMesh>> open(Rails rails, u32 rank,
                                                                  u64 incarnation);
  // Where the rail listens; 0: it is another device.
  [[nodiscard]] u16 port(std::size_t rail) const { return connector_->port(rail); }

  // Returns when all are connected; `deadline` as of now_ns(). `peers`, `connections`: one for each
  // rank, of which that of this rank is empty.
  [[nodiscard]] Expected<void> connect(std::span<const StreamPeer> peers,
                                       std::span<const std::unique_ptr<Connection>> connections,
                                       i64 deadline);

 private:
  // A queue pair, as a lane of the connector.
  struct Lane {
    u32 rank = 0, rail = 0;
    [[nodiscard]] constexpr u64 value() const { return u64{rank} << 32 | rail; }
    [[nodiscard]] static constexpr Lane of(u64 value) {
      return {static_cast<u32>(value >> 32), static_cast<u32>(value)};
    }
  };
  struct Pending {
    StreamQueuePair queue_pair{};
    bool is_up = false;
    std::unique_ptr<StreamEnd> end{};
  };

  StreamMesh(Rails rails, u32 rank) : rails_(rails), rank_(rank) {}
  void add_lanes(u32 rank, const std::vector<QPAddress>& own);
  [[nodiscard]] Expected<void> begin(Lane lane, const StreamPeer& peer);
  [[nodiscard]] Expected<void> take(StreamEvent event);
  [[nodiscard]] Expected<void> await_event(i64 deadline);
  [[nodiscard]] std::optional<Lane> first_missing() const;

  Rails rails_;
  u32 rank_;
  std::unique_ptr<StreamConnector> connector_{};
  std::map<u64, Pending> lanes_{};  // by Lane::value()
};

}  // namespace verbena::coll
