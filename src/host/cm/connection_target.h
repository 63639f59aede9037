// ConnectionTarget: the receiver of a listener's requests or of a connection's events.
// Called with the adapter locked: an implementation must not block or call the adapter.
#pragma once

#include "connect/cm_event.h"

namespace verbena::host {

class ConnectionTarget {
 public:
  virtual ~ConnectionTarget() = default;
  // All but requests.
  virtual void on_connection_event(const CMEvent& event) = 0;
  // For a listener. Returns the target of the new connection, or nullptr to reject it.
  [[nodiscard]] virtual ConnectionTarget* on_request(CommId id, const ConnectRequest& request) = 0;
  [[nodiscard]] virtual ConnectionTarget* on_request(CommId id, const SIDRRequest& request) = 0;
  [[nodiscard]] virtual ConnectionTarget* on_request(CommId id, const StreamRequest& request) = 0;
  // The peer has withdrawn a request before the program accepted it. The target hears nothing more,
  // and accept() fails.
  virtual void on_request_withdrawn() = 0;
};

// The ID is dead after such an event. CMAgent's contract.
[[nodiscard]] inline bool is_last(const CMEvent& event) {
  return std::holds_alternative<Rejected>(event.what) ||
         std::holds_alternative<Unreachable>(event.what) ||
         std::holds_alternative<TimeWaitExit>(event.what) ||
         std::holds_alternative<SIDRReply>(event.what) ||
         std::holds_alternative<StreamRefused>(event.what) ||
         std::holds_alternative<StreamEnded>(event.what);
}

}  // namespace verbena::host
