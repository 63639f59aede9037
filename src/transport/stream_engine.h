// StreamEngine: an Engine whose wire side is one reliable byte stream, as TCP carries it: iWARP.
// Bytes that arrive go in by on_bytes(), in any pieces; bytes to send come out by gather().
// Contract: as Engine's. After gather() the driver sends a prefix of the gathered bytes and
// reports its length by on_sent(), before any other call. `now` never goes back.
// The result does not depend on how the bytes are cut into pieces.
#pragma once

#include "transport/engine.h"
#include "transport/stream_agreement.h"
#include "transport/stream_gather.h"

namespace verbena {

enum class StreamEnd : u8 {
  kFinished,  // the peer sends no more (FIN)
  kLost,      // reset, or timed out
};

// The reason that a TERMINATE message gives. RFC 5040, 4.8.
struct TerminateReason {
  u8 layer = 0, type = 0, code = 0;
  friend bool operator==(const TerminateReason&, const TerminateReason&) = default;
};

struct StreamCounts {
  u64 sent_segments = 0, received_segments = 0;
};

class StreamEngine : public Engine {
 public:
  // The stream is set up. The QP enters RTS next. Only in Init, or Reset before it.
  virtual void begin(const StreamAgreement& agreement, Time now) = 0;

  // Takes bytes until a message has come out, or all. Returns the rest, for another call once the
  // outputs are drained.
  [[nodiscard]] virtual Bytes on_bytes(Bytes bytes, Time now) = 0;
  // Returns false while copies to far memory must end first: on_bytes() takes nothing.
  [[nodiscard]] virtual bool takes_bytes() const = 0;
  // Where the next bytes belong, so that a driver may receive them there: payload of a segment
  // that is checked. Empty: nowhere.
  [[nodiscard]] virtual MutableBytes direct_place() = 0;
  // So many bytes were received there.
  virtual void on_placed(u32 bytes, Time now) = 0;
  virtual void on_end(StreamEnd how, Time now) = 0;

  // Adds the bytes to be sent next. If it adds nothing, the stream is idle.
  virtual void gather(StreamGather& out, Time now) = 0;
  // The driver has sent the first `bytes` that the last gather() added.
  virtual void on_sent(const StreamGather& gathered, u32 bytes, Time now) = 0;
  // Returns true if nothing more will be sent, and the driver shall end the stream.
  [[nodiscard]] virtual bool wants_end() const = 0;
  [[nodiscard]] virtual StreamCounts counts() const = 0;
  // Return the reason of the TERMINATE by which we or the peer ended the stream, or nullopt if
  // there is none.
  [[nodiscard]] virtual std::optional<TerminateReason> sent_terminate() const = 0;
  [[nodiscard]] virtual std::optional<TerminateReason> received_terminate() const = 0;
};

}  // namespace verbena
