#include "cli/qp_text.h"

#include <fmt/format.h>

#include "base/check.h"

namespace verbena::cli {

std::string_view text_of(QPType type) {
  switch (type) {
    case QPType::kRC: return "RC";
    case QPType::kUC: return "UC";
    case QPType::kUD: return "UD";
    case QPType::kXRCInitiator: return "XRC_INI";
    case QPType::kXRCTarget: return "XRC_TGT";
    case QPType::kRawPacket: return "RAW";
  }
  CHECK_UNREACHABLE();
}

std::string qpn_text(QPN qpn) { return fmt::format("{:#08x}", qpn.value); }

std::string peer_text(const host::QPSnapshot& qp) {
  return qp.peer.is_zero() ? "-" : qp.peer.to_string();
}

}  // namespace verbena::cli
