#include "transport/local/published_qps.h"

namespace verbena {
namespace {

// In RTR the first message raises an event, so it must be a packet.
bool accepts_requests(const QPAttributes& qp) {
  return qp.type == QPType::kRC && (qp.state == QPState::kRTS || qp.state == QPState::kSQD);
}

}  // namespace

bool PublishedQP::accepts_from(const QPAttributes& requester) const {
  if (tcp().is_connected() || requester.tcp.is_connected())
    return accepts == 1 && tcp().reversed() == requester.tcp;
  return accepts == 1 && dest_qp == requester.qpn && rq_psn == requester.sq_psn.value() &&
         p_key == requester.p_key.value && path_mtu == bytes(requester.path_mtu) &&
         source == requester.path.destination && destination == requester.path.source;
}

void QPPublisher::update(const QPAttributes& qp) {
  accepts_requests(qp) ? publish(qp) : withdraw(qp.qpn);
}

void QPPublisher::on_established(const QPAttributes& qp) {
  if (qp.type == QPType::kRC && qp.state == QPState::kRTR) publish(qp);
}

void QPPublisher::publish(const QPAttributes& qp) {
  const u32 place = qp.qpn.value % PublishedQPs::kPlaces;
  withdrawn_ |= published_[place];  // the change may have removed a right
  published_.set(place);
  const TCPTuple& tcp = qp.tcp;
  const bool is_stream = tcp.is_connected();
  qps_.places_[place].store({.accepts = 1,
                             .dest_qp = qp.dest_qp,
                             .rq_psn = qp.rq_psn.value(),
                             .pd = qp.pd,
                             .access = qp.remote_access,
                             .p_key = qp.p_key.value,
                             .path_mtu = bytes(qp.path_mtu),
                             .max_dest_rd_atomic = qp.max_dest_rd_atomic,
                             .source = is_stream ? tcp.local : qp.path.source,
                             .destination = is_stream ? tcp.remote : qp.path.destination,
                             .source_port = tcp.local_port,
                             .destination_port = tcp.remote_port});
}

void QPPublisher::withdraw(QPN qpn) {
  const u32 place = qpn.value % PublishedQPs::kPlaces;
  if (!published_[place]) return;
  published_.reset(place);
  withdrawn_ = true;
  qps_.places_[place].store({});
}

}  // namespace verbena
