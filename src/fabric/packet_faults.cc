#include "fabric/packet_faults.h"

#include <variant>

#include <fmt/format.h>

#include "wire/ib/bth.h"

namespace verbena::fabric {
namespace {

// Why a simulated link has no such fault; "": it has.
struct Refusal {
  std::string operator()(const faults::Corrupt& corrupt) const {
    return corrupt.good_icrc ? "payload is not simulated, so that icrc=good changes nothing" : "";
  }
  std::string operator()(const faults::Refuse&) const {
    return "a link answers nothing: nak and rnr are faults of a live device (verbena run)";
  }
  std::string operator()(const faults::BreakQP&) const { return of_device("qp-error"); }
  std::string operator()(const faults::OverrunCQ&) const { return of_device("cq-overrun"); }
  std::string operator()(const faults::RefuseRegistration&) const {
    return of_device("registration-error");
  }
  template <typename Other>
  std::string operator()(const Other&) const {
    return {};
  }
  static std::string of_device(std::string_view name) {
    return fmt::format("{} is a fault of a live device (verbena run), none of a link", name);
  }
};

}  // namespace

std::string refusal_of(const std::vector<faults::Rule>& rules) {
  for (const faults::Rule& rule : rules)
    if (std::string refusal = std::visit(Refusal{}, rule.action); !refusal.empty()) return refusal;
  return {};
}

faults::Verdict PacketFilter::judge(const Frame& frame, QPN sender,
                                    const std::vector<u32>& addresses, Time now) {
  const std::optional<BTH> bth =
      BTH::decode(std::span<const u8>(frame.headers).first(frame.header_bytes));
  if (!bth) return {};  // no device makes such a packet, but a live process may
  const bool sends = direction_ == faults::Direction::kTransmit;
  const GID peer = GID::from_ipv4(addresses[sends ? frame.destination : frame.source]);
  return filter_.judge({.direction = direction_,
                        .opcode = bth->opcode,
                        .psn = bth->psn,
                        .local_qp = sends ? sender : bth->dest_qp,
                        .peer = peer,
                        .size_bytes = std::size_t{frame.header_bytes} + frame.payload_bytes +
                                      bth->pad_count + kICRCSize},
                       now);
}

}  // namespace verbena::fabric
