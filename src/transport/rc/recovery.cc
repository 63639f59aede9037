#include "transport/rc/recovery.h"

#include "wire/ib/ack_timeout.h"

namespace verbena {

namespace {

constexpr u8 kRetryForEver = 7;  // of rnr_retry. IBTA 11.2.5.2

}  // namespace

void Recovery::reset() {
  pause_until_.reset();
  gap_at_.reset();
  probe_.reset();
  probe_due_ = false;
}

void Recovery::begin(Time now) {
  retries_left_ = qp_.retry_count;
  rnr_retries_left_ = qp_.rnr_retry_count;
  last_news_ = now;
  probes_ = ProbeTimer(path_.min_probe_timeout);
}

void Recovery::on_news(Time now) {
  retries_left_ = qp_.retry_count;
  rnr_retries_left_ = qp_.rnr_retry_count;
  pause_until_.reset();
  gap_at_.reset();
  last_news_ = now;
  probe_due_ = false;
}

// An ACK of the probe alone means that the peer has no more, if the ACK is the probe's.
void Recovery::on_acknowledged(PSN unacked, Time now) {
  probes_.on_acknowledged(unacked, now);
  if (!probe_ || unacked.before(probe_->end)) return;
  if (unacked == probe_->end && unacked.before(probe_->in_flight_end)) probes_.on_probe_answered();
  probe_.reset();
}

void Recovery::on_moved_back() {
  probe_.reset();
  probe_due_ = false;
  probes_.on_resent();
}

bool Recovery::take_retry() {
  if (retries_left_ == 0) return false;
  --retries_left_;
  return true;
}

// Retries count silence, and the peer has answered.
bool Recovery::take_rnr_retry() {
  if (qp_.rnr_retry_count != kRetryForEver) {
    if (rnr_retries_left_ == 0) return false;
    --rnr_retries_left_;
  }
  retries_left_ = qp_.retry_count;
  return true;
}

bool Recovery::is_new_gap(PSN unacked) {
  if (gap_at_ == unacked) return false;
  gap_at_ = unacked;
  return true;
}

bool Recovery::take_probe() {
  if (probes_.peer_is_awake()) return false;
  probes_.on_probe();
  probe_due_ = true;
  return true;
}

void Recovery::on_probe_sent(PSN end, PSN in_flight_end) {
  probe_due_ = false;
  probe_ = {end, in_flight_end};
}

Time Recovery::ack_timeout_at() const {
  const std::optional<Duration> timeout = ack_timeout(qp_.ack_timeout);
  return timeout ? last_news_ + std::max(*timeout, path_.min_ack_timeout) : Time::never();
}

}  // namespace verbena
