#include "device/device.h"

#include "base/prefetch.h"
#include "device/device_impl.h"
#include "device/objects/grants.h"

namespace verbena {
namespace {

constexpr std::size_t kEngineBytes = 2048;  // about an RC engine's

}  // namespace

Device::Device(const DeviceConfig& config) : impl_(std::make_unique<Impl>(config)) {}

Device::~Device() = default;

void Device::fetch(u32 step, QPN qpn) const {
  if (step == 0) return prefetch_object(*impl_);
  if (step == 1) return impl_->qps.prefetch(qpn);
  const QueuePair* const qp = impl_->qps.find(qpn);
  if (qp == nullptr) return;
  if (step == 2) return prefetch_object(*qp);
  if (qp->engine != nullptr) prefetch_bytes(qp->engine.get(), kEngineBytes);
}

const DeviceConfig& Device::config() const { return impl_->config; }

ProtectionTable& Device::memory() { return impl_->memory; }

const Counters& Device::counters() const {
  impl_->sum = impl_->port;
  impl_->sum.transport = impl_->destroyed_qps;
  impl_->qps.for_each([this](const QueuePair& qp) {
    add(impl_->sum.transport, counters_of(&qp));
    add(impl_->sum, impl_->local_traffic_of(qp));
  });
  return impl_->sum;
}

// --- protection domains

Result<ProtectionDomain*> Device::alloc_pd() {
  ProtectionDomain* const pd = impl_->pds.create();
  if (pd == nullptr) return failure(Status::kNoMemory);
  if (KeyPublisher* const publisher = impl_->config.local.keys) publisher->publish(pd->id);
  return pd;
}

Status Device::dealloc_pd(ProtectionDomain* pd) {
  if (pd->users != 0 || impl_->memory.pd_in_use(pd->id)) return Status::kBusy;
  if (KeyPublisher* const publisher = impl_->config.local.keys) publisher->withdraw(pd->id);
  impl_->pds.destroy(pd);
  return Status::kOk;
}

// --- completion queues

Result<CompletionQueue*> Device::create_cq(u32 min_cqe, void* user, OnOverrun on_overrun) {
  const Result<u32> cqe = grant_cqe(min_cqe, impl_->config.limits);
  if (!cqe.has_value()) return failure(cqe.error());
  CompletionQueue* const cq = impl_->cqs.create(*cqe, user, on_overrun);
  if (cq == nullptr) return failure(Status::kNoMemory);
  return cq;
}

Status Device::resize_cq(CompletionQueue* cq, u32 min_cqe) {
  const Result<u32> cqe = grant_cqe(min_cqe, impl_->config.limits);
  return cqe.has_value() ? cq->resize(*cqe) : cqe.error();
}

Status Device::destroy_cq(CompletionQueue* cq) {
  if (cq->users != 0) return Status::kBusy;
  impl_->events.forget(cq->events);
  impl_->runner.forget(*cq);
  impl_->cqs.destroy(cq);
  return Status::kOk;
}

u32 Device::poll_cq(CompletionQueue* cq, std::span<CQE> out) {
  impl_->habit.on_poll();
  const u32 count = cq->poll(out);
  impl_->runner.on_polled(out.first(count));
  return count;
}

void Device::request_notification(CompletionQueue* cq, NotifyOn on, Time now) {
  impl_->runner.request_notification(*cq, on, now);
}

void Device::hurry_leftovers() { impl_->runner.hurry_leftovers(); }

void Device::moderate_cq(CompletionQueue* cq, const CQModeration& moderation) {
  cq->moderate(moderation);
}

u32 Device::capacity_of(const CompletionQueue* cq) const { return cq->capacity(); }

bool Device::overrun(const CompletionQueue* cq) const { return cq->overrun(); }

// --- shared receive queues

Result<SharedReceiveQueue*> Device::create_srq(const SRQInit& init) {
  const Result<ReceiveQueueLimits> limits = grant_srq(init.limits, impl_->config.limits);
  if (!limits.has_value()) return failure(limits.error());
  if (init.pd == nullptr || (init.xrcd == nullptr) != (init.cq == nullptr))
    return failure(Status::kInvalidArgument);
  SRQInit granted = init;
  granted.limits = *limits;
  if (++impl_->srq_generation == 0) ++impl_->srq_generation;
  SharedReceiveQueue* const srq = impl_->srqs.create(impl_->srq_generation, granted);
  if (srq == nullptr) return failure(Status::kNoMemory);
  ++srq->pd.users;
  if (srq->xrcd != nullptr) {
    ++srq->xrcd->users;
    ++srq->cq->users;
  }
  return srq;
}

Status Device::modify_srq(SharedReceiveQueue* srq, const SRQModify& asked) {
  SRQModify change = asked;
  if (asked.depth) {
    const Result<ReceiveQueueLimits> granted =
        grant_srq({.depth = *asked.depth, .max_sge = srq->limits().max_sge}, impl_->config.limits);
    if (!granted.has_value()) return granted.error();
    change.depth = granted->depth;
  }
  const Status status = srq->modify(change);
  if (srq->take_limit_reached()) impl_->events.raise(srq->events, AsyncEventType::kSRQLimitReached);
  return status;
}

u32 Device::srq_limit(const SharedReceiveQueue* srq) const { return srq->limit(); }

const ReceiveQueueLimits& Device::limits_of(const SharedReceiveQueue* srq) const {
  return srq->limits();
}

u32 Device::number_of(const SharedReceiveQueue* srq) const { return srq->number(); }

// XRC targets are no users of an SRQ: those of its domain find that it is gone.
Status Device::destroy_srq(SharedReceiveQueue* srq) {
  if (srq->users != 0) return Status::kBusy;
  impl_->events.forget(srq->events);
  --srq->pd.users;
  if (srq->xrcd != nullptr) {
    --srq->xrcd->users;
    --srq->cq->users;
  }
  impl_->srqs.destroy(srq);
  return Status::kOk;
}

// A QP that ran out of receives is not told: its peer tries again (RNR). IBTA 9.7.5.2.8
PostError Device::post_srq_receive(SharedReceiveQueue* srq, const RecvWR& wr, Time) {
  return srq->queue().push(wr);
}

// --- XRC domains

Result<XRCDomain*> Device::open_xrcd() {
  XRCDomain* const xrcd = impl_->xrcds.create(impl_->srqs);
  if (xrcd == nullptr) return failure(Status::kNoMemory);
  return xrcd;
}

Status Device::close_xrcd(XRCDomain* xrcd) {
  if (xrcd->users != 0) return Status::kBusy;
  impl_->xrcds.destroy(xrcd);
  return Status::kOk;
}

// --- byte streams

Streams& Device::streams() { return impl_->streams; }

// --- management datagrams

bool Device::poll_gsi(GSIMessage& out) { return impl_->gsi.poll(out); }

Status Device::post_gsi(const AddressVector& path, const MADBytes& mad) {
  return impl_->gsi.post(path, mad);
}

// --- the port

Reception Device::on_frame(const IngressFrame& frame, Time now) {
  return impl_->ingress.on_frame(frame, now);
}

Reception Device::on_packet(const PacketView& packet, const IngressFrame& frame, Time now) {
  return impl_->ingress.on_packet(packet, frame, now);
}

void Device::on_timer(Time now) {
  impl_->runner.on_timer(now);
  impl_->streams.on_timer(now);
}

bool Device::has_requested_notification() const {
  return impl_->runner.has_requested_notification();
}

bool Device::may_have_deferred() const { return impl_->runner.may_have_deferred(); }
bool Device::run_deferred(Time now) { return impl_->runner.run_deferred(now); }

bool Device::poll_frame(Time now, EgressFrame& out, Trains trains) {
  return impl_->egress.poll_frame(now, trains, out);
}

bool Device::poll_acknowledgement(Time now, EgressFrame& out) {
  return impl_->egress.poll_acknowledgement(now, out);
}

void Device::pause(QueuePair* qp) { impl_->runner.pause(*qp); }

void Device::resume(QueuePair* qp) { impl_->runner.resume(*qp); }

bool Device::has_output() const { return has_frames() || has_events(); }

bool Device::has_frames() const {
  return impl_->runner.may_send() || !impl_->cnps.empty() || impl_->gsi.has_frames();
}

bool Device::has_events() const {
  return impl_->runner.has_notification() || !impl_->events.empty();
}

Time Device::next_timer() const { return impl_->runner.next_timer(); }

Time Device::next_send() const { return impl_->runner.next_send(); }

std::optional<void*> Device::poll_completion_event() {
  const CompletionQueue* const cq = impl_->runner.poll_notification();
  if (cq == nullptr) return std::nullopt;
  return cq->user;
}

std::optional<AsyncEvent> Device::poll_async_event() { return impl_->events.poll(); }

void* Device::user_of(const QueuePair* qp) { return qp->init.user; }
void* Device::user_of(const CompletionQueue* cq) { return cq->user; }
void* Device::user_of(const SharedReceiveQueue* srq) { return srq->user; }

}  // namespace verbena
