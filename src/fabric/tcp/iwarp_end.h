// IWARPEnd: an end of a simulated TCP connection that carries iWARP. MPA, DDP and RDMAP are those
// of live connections: the engine of transport/iwarp/ makes the FPDUs, and the peer's engine reads,
// checks and executes them. TCP is the simulation's. IWARPMemory is what the ends of a host share.
//   a flow      RDMA WRITEs, at most kMostPayload bytes each
//   a message   the same, and with the last of them Immediate Data (RFC 7306, 6): its word
// The set-up of MPA is not simulated: ends begin with an agreement, of FPDUs with CRCs that nobody
// computes, since payload has no bytes.
// Contract: as FPDUPipe's for threads. The sender calls make_until() before it sends bytes.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "fabric/tcp/fpdu_pipe.h"
#include "transport/iwarp/engine.h"
#include "wire/iwarp/framing.h"

namespace verbena::fabric {

class IWARPMemory {
 public:
  static constexpr u32 kMostPayload = 64 << 10;  // of one WRITE

  IWARPMemory();
  [[nodiscard]] ProtectionTable& table() { return table_; }
  [[nodiscard]] const MRKeys& source() const { return source_; }  // of what is sent
  [[nodiscard]] const MRKeys& sink() const { return sink_; }      // where peers write
  // Whether the piece of a StreamGather is payload from source().
  [[nodiscard]] static bool is_payload(Bytes piece);

 private:
  ProtectionTable table_{4, PRNG(1)};
  MRKeys source_, sink_;
};

class IWARPEnd {
 public:
  // FPDUs are for segments of `mss` bytes, or of 128, if that is more. RFC 5044, 5.1
  IWARPEnd(IWARPMemory& memory, u32 mss);
  void connect(std::shared_ptr<FPDUPipe> pipe, RKey peer_key) {
    pipe_ = std::move(pipe);
    peer_key_ = peer_key;
  }

  // --- the sending end
  // Queues a message with its word, or a flow. Returns how many bytes it takes in the stream.
  [[nodiscard]] u64 post(u64 bytes, std::optional<u32> word);
  // The same of a flow, at either end, without queueing it.
  [[nodiscard]] u64 bytes_of_flow(u64 bytes) const { return iwarp::write_bytes(bytes, segment_); }
  // Makes the FPDUs of which bytes lie before this position of the stream. `room` is scratch.
  void make_until(u64 position, StreamGather& room, Time now);

  // --- the receiving end
  // TCP has delivered the stream up to this position.
  void on_delivered(u64 position, Time now);
  // Returns the word of a message that has arrived, once.
  [[nodiscard]] std::optional<u32> poll_message();
  [[nodiscard]] const EngineCounters& counters() const { return engine_.counters(); }

 private:
  struct Message {
    u64 bytes = 0;  // that no WRITE has yet
    std::optional<u32> word;
  };

  void post_write(Time now);
  void take(Bytes bytes, Time now);
  void take_completions();
  void post_receive();

  IWARPMemory& memory_;
  const u32 segment_;
  QPAttributes qp_;
  ReceiveQueue receives_;
  iwarp::IWARPEngine engine_;
  std::shared_ptr<FPDUPipe> pipe_;
  RKey peer_key_{};
  std::deque<Message> to_send_;
  u64 made_ = 0, delivered_ = 0;  // positions of the stream
  std::deque<u32> arrived_;       // words
};

}  // namespace verbena::fabric
