// WindowControl: the congestion control of one TCP sender, of any kind.
#pragma once

#include <variant>

#include "congestion/tcp/cubic.h"
#include "congestion/tcp/dctcp.h"
#include "congestion/tcp/reno.h"

namespace verbena::tcp {

enum class ControlKind : u8 { kReno, kCUBIC, kDCTCP };

class WindowControl {
 public:
  WindowControl(ControlKind kind, const WindowState& state);

  struct Acknowledgement {
    u64 bytes = 0;         // newly acknowledged
    u64 marked_bytes = 0;  // of those
    u64 up_to = 0, sent = 0;
    Duration round_trip{};
    bool grows = false;      // no loss is being repaired, and the window was the sender's limit
    bool may_reduce = true;  // no loss is being repaired
  };
  void on_acknowledged(const Acknowledgement& ack, Time now);
  void on_congestion(u64 in_flight, Time now);
  void on_timeout(u64 in_flight, Time now);
  // The peer's echo of congestion: RFC 3168, 6.1.2 for Reno and CUBIC; with DCTCP each
  // acknowledgement carries it. Returns true if the window was reduced because of it.
  [[nodiscard]] bool on_echo(u64 in_flight, Time now);
  [[nodiscard]] u64 window() const { return state().window; }
  [[nodiscard]] const WindowState& state() const;

 private:
  std::variant<Reno, CUBIC, DCTCP> control_;
};

}  // namespace verbena::tcp
