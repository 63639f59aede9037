// Streams: QPs whose transport is a byte stream: bytes on their way in and out. Beside Ingress and
// Egress, which have packets. RFC 5044, 6 (a stream belongs to one QP).
#pragma once

#include <optional>
#include <vector>

#include "device/port/counters.h"
#include "device/qp/engine_runner.h"

namespace verbena {

// StreamOpening: the agreement of a connection manager with the peer, for the QP that gets the
// stream.
struct StreamOpening {
  StreamAgreement agreement;
  GID local, remote;  // addresses of the two ends
  TCPTuple tcp{};     // of the connection, for peers on this host; not connected: there are none
};

class Streams {
 public:
  Streams(const QPTable& qps, EngineRunner& runner, Counters& counters)
      : qps_(qps), runner_(runner), counters_(counters) {}

  // Init to RTS. kInvalidArgument: another state, or no QP of this kind. Numbers are never used
  // again.
  [[nodiscard]] Result<u64> open(QueuePair& qp, const StreamOpening& opening, Time now);
  // Returns the QP that has the stream, or nullptr if it was destroyed or reset since.
  [[nodiscard]] QueuePair* find(QPN qpn, u64 number) const;
  // How many streams have lost their QP so.
  [[nodiscard]] u64 orphans() const { return orphans_; }
  void forget(QueuePair& qp);  // it is destroyed or reset

  // Takes all bytes. Those that the engine cannot take yet are kept until on_timer().
  void on_bytes(QueuePair& qp, Bytes bytes, Time now);
  // Returns false while bytes are kept. The driver then leaves further ones to the kernel, so that
  // the peer waits.
  [[nodiscard]] bool takes_bytes(const QueuePair& qp) const { return qp.copies.bytes.empty(); }
  // StreamEngine::direct_place() of its engine.
  [[nodiscard]] MutableBytes place(QueuePair& qp) {
    return takes_bytes(qp) ? qp.stream->direct_place() : MutableBytes{};
  }
  void on_placed(QueuePair& qp, u32 bytes, Time now);
  // The end follows the bytes that are kept.
  void on_end(QueuePair& qp, StreamEnd how, Time now);
  // Passes on what is kept, as far as the engines take it. After EngineRunner::on_timer().
  void on_timer(Time now);
  // The QP's connection has no manager any more: the QP goes to Error, and the stream ends.
  void abandon(QueuePair& qp, Time now);

  // Returns the QP whose turn it is to send, or nullptr.
  [[nodiscard]] QueuePair* poll(Time now) { return runner_.poll_stream(now); }
  // Returns in `out` the data that the QP sends next. The caller reports the part that it has sent
  // by on_sent(), and does not call it if there is nothing.
  void gather(QueuePair& qp, StreamGather& out, Time now);
  // Returns true if nothing more will be sent, and the driver must end the stream.
  [[nodiscard]] bool wants_end(const QueuePair& qp) const { return qp.stream->wants_end(); }
  void on_sent(QueuePair& qp, const StreamGather& gathered, u32 bytes, Time now);

 private:
  struct Waiting {
    QueuePair* qp;
    std::optional<StreamEnd> end;
  };
  [[nodiscard]] Bytes pass_on(QueuePair& qp, Bytes bytes, Time now);
  void keep(QueuePair& qp, Bytes bytes, Time now);
  [[nodiscard]] Waiting* find_waiting(const QueuePair& qp);
  void count_received(QueuePair& qp, u64 bytes, u64 segments_before);

  const QPTable& qps_;
  EngineRunner& runner_;
  Counters& counters_;
  u64 opened_ = 0, orphans_ = 0;
  std::vector<Waiting> waiting_;  // each has kept bytes
};

}  // namespace verbena
