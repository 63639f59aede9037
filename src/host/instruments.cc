#include "host/instruments.h"

#include "host/links/captured_link.h"
#include "host/os/clock.h"

namespace verbena::host {

void Instruments::capture_to(CaptureFile& file, const std::string& interface) {
  capture_ = &file;
  capture_interface_ = file.add_interface(interface);
  if (streams_ != nullptr)
    streams_->capture_to(file, capture_interface_);
  else
    link_ = std::make_unique<CapturedLink>(std::move(link_), file, capture_interface_);
  choose_path();
}

void Instruments::explain_with(std::unique_ptr<Explainer> explainer) {
  explainer_ = std::move(explainer);
  if (local_ != nullptr)
    local_->outgoing().note_in(explainer_ != nullptr ? &explainer_->history() : nullptr, clock_);
}

Expected<void> Instruments::set_faults(std::vector<faults::Rule> rules, u64 seed, Time now) {
  if (streams_ != nullptr) return set_stream_faults(std::move(rules), seed, now);
  if (faulty_ != nullptr) link_ = faulty_->release();
  faulty_ = nullptr;
  if (!rules.empty()) {
    auto faulty = std::make_unique<FaultyLink>(std::move(link_),
                                               faults::FaultFilter(std::move(rules), seed, now));
    faulty->set_peer_lookup([this](QPN local) { return peer_of(local); });
    if (capture_ != nullptr || explainer_ != nullptr) faulty->set_drop_listener(drop_listener());
    faulty_ = faulty.get();
    link_ = std::move(faulty);
  }
  choose_path();
  return {};
}

Expected<void> Instruments::set_stream_faults(std::vector<faults::Rule> rules, u64 seed, Time now) {
  stream_faults_ = !rules.empty();
  choose_path();
  return streams_->faults().set_rules(std::move(rules), seed, now);
}

// Faults and captures are of packets, so that copies between processes give way to packets.
void Instruments::choose_path() {
  if (local_ == nullptr) return;
  if (faulty_ == nullptr && !stream_faults_ && capture_ == nullptr)
    local_->turn_on();
  else
    local_->turn_off();
}

faults::FaultFilter* Instruments::filter() {
  if (streams_ != nullptr) return streams_->faults().filter();
  return faulty_ != nullptr ? &faulty_->filter() : nullptr;
}

std::optional<QPN> Instruments::peer_of(QPN local) const {
  const QueuePair* const qp = device_.find_qp(local);
  if (qp == nullptr) return std::nullopt;
  const QPAttributes& attributes = device_.attributes_of(qp);
  return attributes.type == QPType::kUD ? std::nullopt : std::optional(attributes.dest_qp);
}

void Instruments::add_to_history(const IngressFrame& frame, Reception reception, Time now) {
  explain::PacketHistory& history = explainer_->history();
  if (const PacketView* const packet = link_->decoded()) {
    if (frame.acknowledgement != nullptr)
      history.on_received(*frame.acknowledgement, packet->headers.bth.dest_qp, now);
    history.on_received(*packet, frame.transport.size() - kICRCSize, frame.packets, reception, now);
  } else {
    history.on_received(frame, reception, now);
  }
}

std::optional<ObjectFault> Instruments::poll_object_fault() {
  if (streams_ != nullptr) return streams_->faults().poll_object_fault();
  return faulty_ != nullptr ? faulty_->poll_object_fault() : std::nullopt;
}

bool Instruments::fail_objects(Time now) {
  bool any = false;
  while (const std::optional<ObjectFault> fault = poll_object_fault()) {
    QueuePair* const qp = device_.find_qp(fault->qp);
    if (qp == nullptr) continue;
    any = true;
    if (explainer_ != nullptr) note_object_fault(*fault, qp);
    switch (fault->kind) {
      case ObjectFault::Kind::kBreakQP: device_.fail_qp(qp, now); break;
      case ObjectFault::Kind::kOverrunCQ:
        device_.overrun_cq(device_.init_of(qp).send_cq, now);
        break;
    }
  }
  return any;
}

void Instruments::note_object_fault(const ObjectFault& fault, const QueuePair* qp) {
  switch (fault.kind) {
    case ObjectFault::Kind::kBreakQP: return explainer_->on_qp_broken_by_rule(fault.qp);
    case ObjectFault::Kind::kOverrunCQ:
      return explainer_->on_cq_overrun_by_rule(device_.init_of(qp).send_cq);
  }
}

DropListener Instruments::drop_listener() {
  return
      [this](faults::Direction direction, const faults::HeldFrame& frame, std::string_view cause) {
        if (capture_ != nullptr) drop_to_capture(direction, frame, cause);
        if (explainer_ != nullptr) drop_to_history(direction, frame, cause);
      };
}

void Instruments::drop_to_capture(faults::Direction direction, const faults::HeldFrame& frame,
                                  std::string_view cause) {
  capture_->add(capture_interface_, frame.ingress(),
                direction == faults::Direction::kTransmit ? pcapng::PacketDirection::kOutbound
                                                          : pcapng::PacketDirection::kInbound,
                monotonic_now(), "dropped by the fault: " + std::string(cause));
}

void Instruments::drop_to_history(faults::Direction direction, const faults::HeldFrame& frame,
                                  std::string_view cause) {
  explain::PacketHistory& history = explainer_->history();
  if (direction == faults::Direction::kTransmit)
    history.on_lost_by_fault(frame.egress(), cause);
  else
    history.on_lost_by_fault(frame.ingress(), cause, clock_.last());
}

}  // namespace verbena::host
