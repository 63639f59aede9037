#include "congestion/congestion_control.h"

#include <algorithm>

#include "base/check.h"

namespace verbena {

CongestionControl::AnyAlgorithm CongestionControl::start(const CongestionParameters& parameters) {
  struct Starter {
    AnyAlgorithm operator()(const UncontrolledParameters&) const { CHECK_UNREACHABLE(); }
    AnyAlgorithm operator()(const ConstantRateParameters& p) const { return ConstantRate(p); }
    AnyAlgorithm operator()(const DCQCNParameters& p) const { return ReactionPoint(p); }
    AnyAlgorithm operator()(const TIMELYParameters& p) const { return TIMELY(p); }
    AnyAlgorithm operator()(const SwiftParameters& p) const { return Swift(p); }
    AnyAlgorithm operator()(const HPCCParameters& p) const { return HPCC(p); }
    AnyAlgorithm operator()(const DCTCPParameters& p) const { return DCTCP(p); }
    AnyAlgorithm operator()(const IBCCParameters& p) const { return IBCC(p); }
  };
  return std::visit(Starter{}, parameters.algorithm);
}

CongestionControl::CongestionControl(const CongestionParameters& parameters)
    : window_(parameters.window), algorithm_(start(parameters)) {}

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

void CongestionControl::on_sent(u64 bytes, Time now) {
  std::visit([bytes, now](auto& algorithm) { algorithm.on_sent(bytes, now); }, algorithm_);
}

Rate CongestionControl::rate(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.rate(now); }, algorithm_);
}

u64 CongestionControl::window(Time now) {
  const u64 own = std::visit([now](auto& algorithm) { return algorithm.window(now); }, algorithm_);
  switch (window_.kind) {
    case WindowParameters::Kind::kNone: return own;
    case WindowParameters::Kind::kFixed: return std::min(own, window_.bytes);
    case WindowParameters::Kind::kByRate: return std::min(own, window_by_rate(now));
  }
  CHECK_UNREACHABLE();
}

u64 CongestionControl::window_by_rate(Time now) {
  const auto byte_rate = static_cast<unsigned __int128>(window_.bytes) * rate(now).bps();
  return std::max<u64>(1, static_cast<u64>(byte_rate / window_.line_rate.bps()));
}

bool CongestionControl::will_slow_down() const {
  return std::visit([](const auto& algorithm) { return algorithm.will_slow_down(); }, algorithm_);
}

bool CongestionControl::wants_acks() const {
  return window_.kind != WindowParameters::Kind::kNone ||
         std::visit([](const auto& algorithm) { return algorithm.kWantsAcks; }, algorithm_);
}

bool CongestionControl::moves_waits() const {
  return std::visit([](const auto& algorithm) { return algorithm.kMovesWaits; }, algorithm_);
}

Rate CongestionControl::target(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.target(now); }, algorithm_);
}

double CongestionControl::alpha(Time now) {
  return std::visit([now](auto& algorithm) { return algorithm.alpha(now); }, algorithm_);
}

}  // namespace verbena
