#include "congestion/tcp/window_control.h"

#include "base/check.h"

namespace verbena::tcp {
namespace {

std::variant<Reno, CUBIC, DCTCP> control_of(ControlKind kind, const WindowState& state) {
  switch (kind) {
    case ControlKind::kReno: return Reno(state);
    case ControlKind::kCUBIC: return CUBIC(state);
    case ControlKind::kDCTCP: return DCTCP(state);
  }
  CHECK_UNREACHABLE();
}

using Acknowledgement = WindowControl::Acknowledgement;

void tell(Reno& reno, const Acknowledgement& ack, Time now) {
  if (ack.grows) reno.on_acknowledged(ack.bytes, now);
}

void tell(CUBIC& cubic, const Acknowledgement& ack, Time now) {
  if (ack.grows) cubic.on_acknowledged(ack.bytes, ack.round_trip, now);
}

void tell(DCTCP& dctcp, const Acknowledgement& ack, Time now) {
  dctcp.on_acknowledged({.bytes = ack.bytes,
                         .marked_bytes = ack.marked_bytes,
                         .up_to = ack.up_to,
                         .sent = ack.sent,
                         .grows = ack.grows,
                         .may_reduce = ack.may_reduce},
                        now);
}

}  // namespace

WindowControl::WindowControl(ControlKind kind, const WindowState& state)
    : control_(control_of(kind, state)) {}

void WindowControl::on_acknowledged(const Acknowledgement& ack, Time now) {
  std::visit([&](auto& control) { tell(control, ack, now); }, control_);
}

void WindowControl::on_congestion(u64 in_flight, Time now) {
  std::visit([&](auto& control) { control.on_congestion(in_flight, now); }, control_);
}

void WindowControl::on_timeout(u64 in_flight, Time now) {
  std::visit([&](auto& control) { control.on_timeout(in_flight, now); }, control_);
}

bool WindowControl::on_echo(u64 in_flight, Time now) {
  if (DCTCP* const dctcp = std::get_if<DCTCP>(&control_); dctcp != nullptr)
    return dctcp->take_reduction();
  on_congestion(in_flight, now);
  return true;
}

const WindowState& WindowControl::state() const {
  return std::visit([](const auto& control) -> const WindowState& { return control.state(); },
                    control_);
}

}  // namespace verbena::tcp
