#include "host/cm/live_connection_manager.h"

#include "host/cm/mad_router.h"
#include "host/os/random.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

ConnectionIdentity identity_of(const DeviceConfig& config) {
  ConnectionIdentity identity{.transport = config.transport,
                              .slot = slot_of(config.first_qpn.value),
                              .gids = {},
                              .mtu = config.active_mtu,
                              .max_rd_atomic = config.limits.max_rd_atomic};
  for (const GIDEntry& entry : config.gids) identity.gids.push_back(entry.gid);
  return identity;
}

namespace {

CMConfig agent_config(const DeviceConfig& config) {
  return {.process_slot = ProcessSlot{static_cast<u16>(slot_of(config.first_qpn.value))},
          .ca_guid = GUID{config.node_guid},
          .refusal_patience = MADRouter::kGrace,
          .seed = random_u64()};
}

}  // namespace

LiveConnectionManager::LiveConnectionManager(Adapter& adapter, Device& device)
    : adapter_(adapter),
      device_(device),
      identity_(identity_of(device.config())),
      agent_(agent_config(device.config())) {}

Result<ListenerId> LiveConnectionManager::listen(const ListenParams& params,
                                                 ConnectionTarget& target) {
  const auto session = adapter_.enter();
  const Result<ListenerId> id = agent_.listen(params);
  if (id) listeners_[*id] = &target;
  return id;
}

void LiveConnectionManager::unlisten(ListenerId id) {
  const auto session = adapter_.enter();
  listeners_.erase(id);
  (void)agent_.unlisten(id);
}

Result<CommId> LiveConnectionManager::connect(const ConnectParams& params,
                                              ConnectionTarget& target) {
  const auto session = adapter_.enter();
  const Result<CommId> id = agent_.connect(params, session.real_now());
  if (id)
    connections_[*id] = {.target = &target,
                         .local = params.local_gid,
                         .remote = params.remote_gid,
                         .qpn = params.qpn};
  return id;
}

Result<CommId> LiveConnectionManager::sidr_request(const SIDRRequestParams& params,
                                                   ConnectionTarget& target) {
  const auto session = adapter_.enter();
  const Result<CommId> id = agent_.sidr_request(params, session.real_now());
  if (id) connections_[*id] = {.target = &target};
  return id;
}

// An ID that is dead is not found here, even if the agent has given it to another since.
void LiveConnectionManager::abandon(CommId id) {
  const auto session = adapter_.enter();
  if (!connections_.contains(id)) return;
  forget(id);
  (void)agent_.abandon(id, session.real_now());
}

void LiveConnectionManager::forget(CommId id) {
  connections_.erase(id);
  watch_.remove(id);
}

Status LiveConnectionManager::ready_to_use(CommId id) {
  const auto session = adapter_.enter();
  return agent_.ready_to_use(id, {});
}

Status LiveConnectionManager::accept(CommId id, const AcceptParams& params) {
  const auto session = adapter_.enter();
  watch_.set_qpn(id, params.qpn);
  const Status status = agent_.accept(id, params, session.real_now());
  if (status != Status::kOk) return status;
  if (const auto found = connections_.find(id); found != connections_.end())
    found->second.is_request = false;
  return status;
}

Status LiveConnectionManager::establish(CommId id) {
  const auto session = adapter_.enter();
  return agent_.establish(id);
}

Status LiveConnectionManager::reject(CommId id, const RejectParams& params) {
  const auto session = adapter_.enter();
  const Status status = agent_.reject(id, params, session.real_now());
  if (status == Status::kOk) forget(id);
  return status;
}

Status LiveConnectionManager::sidr_reply(CommId id, const SIDRReplyParams& params) {
  const auto session = adapter_.enter();
  const Status status = agent_.sidr_reply(id, params, session.real_now());
  if (status == Status::kOk) forget(id);
  return status;
}

Status LiveConnectionManager::disconnect(CommId id) {
  const auto session = adapter_.enter();
  const Status asked = agent_.disconnect(id, {}, session.real_now());
  return asked == Status::kOk ? asked : agent_.reply_disconnect(id, {}, session.real_now());
}

Status LiveConnectionManager::take_request(CommId id) {
  const auto session = adapter_.enter();
  return agent_.take_request(id);
}

void LiveConnectionManager::receive(Time now) {
  GSIMessage message;
  while (device_.poll_gsi(message)) {
    agent_.on_mad({.source = message.source,
                   .destination = message.destination,
                   .source_qp = message.source_qp,
                   .mad = message.mad},
                  now);
    (void)drain(now);
  }
}

bool LiveConnectionManager::run_due_timers(Time now) {
  if (now < next_timer()) return false;
  for (const PeerWatch::Connection& bereft : watch_.take_bereft(now))
    agent_.on_mad({.source = bereft.address,
                   .destination = bereft.address,
                   .source_qp = kGSIQPN,
                   .mad = PeerWatch::farewell_to(bereft)},
                  now);
  agent_.on_timer(now);
  return true;
}

// A peer with our own address is on this host.
void LiveConnectionManager::watch(CommId id, const GID& local, const GID& remote, CommId remote_id,
                                  QPN qpn, Time now) {
  if (local != remote) return;
  watch_.add({.address = local, .local_id = id, .remote_id = remote_id, .local_qpn = qpn}, now);
}

bool LiveConnectionManager::drain_agent(Time now) {
  bool any = false;
  while (const std::optional<CMEvent> event = agent_.poll_event()) {
    deliver(*event, now);
    any = true;
  }
  MADOut mad;
  while (agent_.poll_mad(mad)) {
    send(mad);
    any = true;
  }
  return any;
}

// If the device has no room, the MAD is lost as on the network: the agent repeats it.
void LiveConnectionManager::send(const MADOut& mad) {
  (void)device_.post_gsi({.source = mad.source, .destination = mad.destination}, mad.mad);
}

void LiveConnectionManager::deliver(const CMEvent& event, Time now) {
  if (const auto* request = std::get_if<ConnectRequest>(&event.what))
    return deliver_request(event.id, *request, now);
  if (const auto* request = std::get_if<SIDRRequest>(&event.what))
    return deliver_request(event.id, *request, now);
  const auto found = connections_.find(event.id);
  if (found == connections_.end()) return;
  const Connection connection = found->second;
  if (connection.is_request) return withdraw_request(event, *connection.target);
  if (const auto* reply = std::get_if<ReplyReceived>(&event.what)) {
    (void)agent_.mra(event.id, {});
    watch(event.id, connection.local, connection.remote, reply->rep.local_comm_id, connection.qpn,
          now);
  }
  if (std::holds_alternative<Disconnected>(event.what)) watch_.remove(event.id);
  if (is_last(event)) forget(event.id);
  connection.target->on_connection_event(event);
}

// Linux drops the events of a request until the program has accepted it (ucma_event_handler).
// accept() clears `is_request` with the adapter locked, so that a program sees either a failed
// accept() or the event, and never both.
void LiveConnectionManager::withdraw_request(const CMEvent& event, ConnectionTarget& target) {
  if (!is_last(event)) return;
  forget(event.id);
  target.on_request_withdrawn();
}

// Programs may take their time: a peer that asks again is told to wait.
template <typename Request>
void LiveConnectionManager::deliver_request(CommId id, const Request& request, Time now) {
  const auto listener = listeners_.find(request.listener);
  ConnectionTarget* const target =
      listener == listeners_.end() ? nullptr : listener->second->on_request(id, request);
  if (target == nullptr) {
    (void)agent_.abandon(id, now);
    return;
  }
  connections_[id] = {.target = target, .is_request = true};
  if constexpr (std::is_same_v<Request, ConnectRequest>) {
    (void)agent_.mra(id, {});
    watch(id, request.local_gid, request.remote_gid, request.req.local_comm_id, {}, now);
  }
}

void LiveConnectionManager::abandon_all(Time now) {
  for (const auto& [id, connection] : connections_) (void)agent_.abandon(id, now);
  connections_.clear();
  (void)drain(now);
}

}  // namespace verbena::host
