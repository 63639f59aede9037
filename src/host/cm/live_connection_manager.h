// LiveConnectionManager: the ConnectionManager of a LiveAdapter, which drives it: a CMAgent between
// the device's QP 1 and the targets of its events.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "connect/cm_agent.h"
#include "host/adapter.h"
#include "host/cm/connection_manager.h"
#include "host/cm/peer_watch.h"

namespace verbena::host {

class LiveConnectionManager final : public ConnectionManager {
 public:
  // `device` is the adapter's. Both outlive it.
  LiveConnectionManager(Adapter& adapter, Device& device);

  [[nodiscard]] const ConnectionIdentity& identity() const override { return identity_; }
  [[nodiscard]] Result<ListenerId> listen(const ListenParams& params,
                                          ConnectionTarget& target) override;
  void unlisten(ListenerId id) override;
  [[nodiscard]] Result<CommId> connect(const ConnectParams& params,
                                       ConnectionTarget& target) override;
  [[nodiscard]] Result<CommId> sidr_request(const SIDRRequestParams& params,
                                            ConnectionTarget& target) override;
  void abandon(CommId id) override;
  [[nodiscard]] Status ready_to_use(CommId id) override;
  [[nodiscard]] Status accept(CommId id, const AcceptParams& params) override;
  [[nodiscard]] Status establish(CommId id) override;
  [[nodiscard]] Status reject(CommId id, const RejectParams& params) override;
  [[nodiscard]] Status sidr_reply(CommId id, const SIDRReplyParams& params) override;
  [[nodiscard]] Status disconnect(CommId id) override;
  [[nodiscard]] Status take_request(CommId id) override;

  // The adapter's, with its lock held.
  void receive(Time now);  // what has come to QP 1
  [[nodiscard]] bool run_due_timers(Time now);
  // Moves the agent's MADs to the device and its events to their targets. Returns false if there
  // were none.
  bool drain(Time now) { return agent_.has_output() && drain_agent(now); }
  [[nodiscard]] Time next_timer() const {
    return std::min(agent_.next_timer(), watch_.next_timer());
  }
  void abandon_all(Time now);  // the process ends

 private:
  bool drain_agent(Time now);
  void deliver(const CMEvent& event, Time now);
  template <typename Request>
  void deliver_request(CommId id, const Request& request, Time now);
  void withdraw_request(const CMEvent& event, ConnectionTarget& target);
  void send(const MADOut& mad);
  void forget(CommId id);
  void watch(CommId id, const GID& local, const GID& remote, CommId remote_id, QPN qpn, Time now);

  Adapter& adapter_;
  Device& device_;
  const ConnectionIdentity identity_;
  CMAgent agent_;
  std::unordered_map<ListenerId, ConnectionTarget*> listeners_;
  struct Connection {
    ConnectionTarget* target = nullptr;
    GID local{}, remote{};  // of those that we asked for
    QPN qpn{};
    bool is_request = false;  // that the program has not accepted
  };
  std::unordered_map<CommId, Connection> connections_;
  PeerWatch watch_;
};

}  // namespace verbena::host
