#include "congestion/congestion_control.h"

#include "base/check.h"

namespace verbena {

CongestionControl::AnyAlgorithm CongestionControl::start(const CongestionParameters& parameters) {
  if (const auto* p = std::get_if<DCQCNParameters>(&parameters.algorithm)) return ReactionPoint(*p);
  CHECK_UNREACHABLE();
}

CongestionControl::CongestionControl(const CongestionParameters& parameters)
    : algorithm_(start(parameters)) {}

void CongestionControl::on_cnp(Time now) {
  std::visit([now](auto& algorithm) { algorithm.on_cnp(now); }, algorithm_);
}

void CongestionControl::on_ack(const AckSignal& ack, Time now) {
  std::visit([&ack, now](auto& algorithm) { algorithm.on_ack(ack, now); }, algorithm_);
}

void CongestionControl::on_nak(Time now) {
  std::visit([now](auto& algorithm) { algorithm.on_nak(now); }, algorithm_);
}

void CongestionControl::on_timeout(Time now) {
  std::visit([now](auto& algorithm) { algorithm.on_timeout(now); }, algorithm_);
}

void CongestionControl::on_sent(u64 octets, Time now) {
  std::visit([octets, now](auto& algorithm) { algorithm.on_sent(octets, now); }, algorithm_);
}

Rate CongestionControl::rate(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.rate(now); }, algorithm_);
}

u64 CongestionControl::window(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.window(now); }, algorithm_);
}

bool CongestionControl::wants_acks() const {
  return std::visit([](const auto& algorithm) { return algorithm.kWantsAcks; }, algorithm_);
}

Rate CongestionControl::target(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.target(now); }, algorithm_);
}

double CongestionControl::alpha(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.alpha(now); }, algorithm_);
}

}  // namespace verbena
