// Device: its calls on queue pairs.
#include <algorithm>

#include "device/device.h"
#include "device/device_impl.h"
#include "device/objects/grants.h"
#include "device/port/gid_table.h"
#include "device/qp/engine_factory.h"
#include "transport/rc/engine.h"

namespace verbena {
namespace {

// Returns the attributes of a QP in Reset. A UD message may fill the port's MTU; UC and RC get
// their MTU later.
QPAttributes initial_attributes(const QPInit& init, QPN qpn, const DeviceConfig& config) {
  QPAttributes attributes;
  attributes.type = init.type;
  attributes.qpn = qpn;
  if (init.pd != nullptr) attributes.pd = init.pd->id;
  attributes.signal_all = init.signal_all;
  attributes.path_mtu = config.active_mtu;
  return attributes;
}

void acquire(const QPInit& init) {
  if (init.pd != nullptr) ++init.pd->users;
  if (init.send_cq != nullptr) ++init.send_cq->users;
  if (init.receive_cq != nullptr) ++init.receive_cq->users;
  if (init.srq != nullptr) ++init.srq->users;
  if (init.xrcd != nullptr) ++init.xrcd->users;
}

void release(const QPInit& init) {
  if (init.pd != nullptr) --init.pd->users;
  if (init.send_cq != nullptr) --init.send_cq->users;
  if (init.receive_cq != nullptr) --init.receive_cq->users;
  if (init.srq != nullptr) --init.srq->users;
  if (init.xrcd != nullptr) --init.xrcd->users;
}

// kEnableSQDNotify belongs to the drain that this change begins; leaving SQD ends the interest.
bool wants_drained_event(const QPModify& change, const QueuePair& qp) {
  if (change.target(qp.attributes.state) != QPState::kSQD) return false;
  if (qp.attributes.state == QPState::kSQD) return qp.notify_when_drained;
  return change.has(QPField::kEnableSQDNotify) && change.enable_sqd_notify;
}

bool has_way(const DeviceConfig& config, const QueuePair& qp, const SendWR& wr) {
  return qp.attributes.type != QPType::kUD || is_usable(config, wr.destination);
}

}  // namespace

Result<QueuePair*> Device::create_qp(const QPInit& init) {
  const Result<QPInit> granted = grant_qp(init, impl_->config);
  if (!granted.has_value()) return failure(granted.error());
  const std::optional<QPN> qpn = impl_->qps.next_number();
  if (!qpn.has_value()) return failure(Status::kNoMemory);
  auto qp =
      std::make_unique<QueuePair>(*granted, initial_attributes(*granted, *qpn, impl_->config));
  impl_->runner.begin_flow(*qp);
  EngineParts parts = qp->parts(impl_->memory);
  const LocalPorts& local = impl_->config.local;
  parts.peers = local.peers;
  parts.habit = &impl_->habit;
  if (impl_->config.path.shared_window_packets != PathAllowances::kNoSharedWindow)
    parts.window = &impl_->window;
  if (init.type == QPType::kRC) {
    parts.local_packets = local.packets;
    parts.local_progress = local.progress;
  }
  if (local.counts != nullptr) local.counts->clear(*qpn);
  if (impl_->config.transport == Transport::kIWARP)
    qp->set_engine(make_stream_engine(parts, impl_->config));
  else
    qp->set_engine(make_engine(parts, impl_->config));
  if (init.type == QPType::kRC && qp->datagrams != nullptr)
    qp->rc = static_cast<RCEngine*>(qp->engine.get());
  impl_->runner.on_created(impl_->qps.size() + 1);
  QueuePair* const created = impl_->qps.insert(std::move(qp));
  acquire(*granted);  // last: nothing is held when memory for the rest is missing
  return created;
}

Status Device::modify_qp(QueuePair* qp, const QPModify& change, Time now) {
  const Status status = check_modify(change, qp->attributes, impl_->config);
  if (status != Status::kOk) return status;
  const QPState to = change.target(qp->attributes.state);
  if (to == QPState::kReset) {
    impl_->cnps.forget(*qp);
    impl_->streams.forget(*qp);
    QPAttributes initial = initial_attributes(qp->init, qp->attributes.qpn, impl_->config);
    initial.counters = qp->attributes.counters;
    impl_->runner.reset(*qp, initial, now);
    return Status::kOk;
  }
  qp->notify_when_drained = wants_drained_event(change, *qp);
  apply_modify(change, impl_->config, qp->attributes);
  impl_->runner.enter(*qp, to, now);
  return Status::kOk;
}

Status Device::attach_counter(QueuePair* qp, std::span<const CountedOp> ops,
                              CompletionCounter& counter) {
  const QPState state = qp->attributes.state;
  if (state != QPState::kReset && state != QPState::kInit) return Status::kInvalidArgument;
  CompletionCounters& counters = qp->attributes.counters;
  for (const CountedOp op : ops)
    if (counters.of(op) != nullptr) return Status::kBusy;
  for (const CountedOp op : ops) counters.of(op) = &counter;
  return Status::kOk;
}

Status Device::destroy_qp(QueuePair* qp) {
  if (impl_->multicast.group_of(*qp).has_value()) return Status::kBusy;
  add(impl_->destroyed_qps, counters_of(qp));
  add(impl_->port, impl_->local_traffic_of(*qp));
  impl_->cnps.forget(*qp);
  impl_->streams.forget(*qp);
  impl_->runner.forget(*qp);
  impl_->memory.invalidate_windows_of(qp->attributes.qpn);
  release(qp->init);
  impl_->qps.erase(qp);
  return Status::kOk;
}

const QPAttributes& Device::attributes_of(const QueuePair* qp) const { return qp->attributes; }

bool Device::is_draining(const QueuePair* qp) const { return qp->engine->is_draining(); }

const QPInit& Device::init_of(const QueuePair* qp) const { return qp->init; }

PostError Device::post_send(QueuePair* qp, const SendWR& wr, Time now) {
  if (!has_way(impl_->config, *qp, wr)) return PostError::kBadDestination;
  return impl_->runner.post_send(*qp, wr, now);
}

PostError Device::post_last_send(QueuePair* qp, const SendWR& wr, Time now) {
  if (qp->rc == nullptr || !impl_->runner.is_free_to_send(*qp)) return post_send(qp, wr, now);
  return impl_->egress.post_last_send(*qp, wr, now);
}

PostError Device::post_sends(QueuePair* qp, std::span<const SendWR> wrs, Time now) {
  if (wrs.size() == 1) return post_last_send(qp, wrs.front(), now);
  for (const SendWR& wr : wrs)
    if (!has_way(impl_->config, *qp, wr)) return PostError::kBadDestination;
  return impl_->runner.post_sends(*qp, wrs, now);
}

PostError Device::post_receive(QueuePair* qp, const RecvWR& wr, Time now) {
  return impl_->runner.post_receive(*qp, wr, now);
}

const std::optional<CongestionControl>& Device::congestion_of(const QueuePair* qp) const {
  return qp->congestion;
}

const QPFault& Device::fault_of(const QueuePair* qp) const { return qp->engine->fault(); }

void Device::fail_qp(QueuePair* qp, Time now) { impl_->runner.fail(*qp, now); }

void Device::overrun_cq(CompletionQueue* cq, Time now) { impl_->runner.overrun(*cq, now); }

Status Device::attach_multicast(QueuePair* qp, const GID& group) {
  const bool has_family = std::ranges::any_of(impl_->config.gids, [&group](const GIDEntry& entry) {
    return !entry.gid.is_zero() && entry.gid.is_ipv4() == group.is_ipv4();
  });
  if (qp->attributes.type != QPType::kUD || !group.is_multicast() || !has_family)
    return Status::kInvalidArgument;
  if (impl_->config.limits.max_multicast_groups == 0) return Status::kNotSupported;
  return impl_->multicast.attach(*qp, group);
}

Status Device::detach_multicast(QueuePair* qp, const GID& group) {
  return impl_->multicast.detach(*qp, group);
}

bool Device::receives_multicast(const GID& group) const {
  return !impl_->multicast.find(group).empty();
}

std::optional<GID> Device::multicast_group_of(const QueuePair* qp) const {
  return impl_->multicast.group_of(*qp);
}

QueuePair* Device::find_qp(QPN qpn) { return impl_->qps.find(qpn); }

const QueuePair* Device::find_qp_from(QPN from) const { return impl_->qps.find_from(from); }

u32 Device::qp_count() const { return impl_->qps.size(); }

QPTraffic Device::traffic_of(const QueuePair* qp) const {
  QPTraffic traffic = qp->traffic;
  traffic += impl_->local_traffic_of(*qp);
  return traffic;
}

EngineCounters Device::counters_of(const QueuePair* qp) const {
  EngineCounters counters = qp->engine->counters();
  const LocalWork peers = impl_->local_work_of(*qp);
  counters.rx_write_requests += peers.writes;
  counters.rx_read_requests += peers.reads;
  return counters;
}

}  // namespace verbena
