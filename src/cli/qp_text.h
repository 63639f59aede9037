// QPs in words.
#pragma once

#include <string>
#include <string_view>

#include "host/stats/snapshot.h"

namespace verbena::cli {

[[nodiscard]] std::string_view text_of(QPType type);  // "RC", as ibv_devinfo's manual has it
[[nodiscard]] std::string qpn_text(QPN qpn);          // "0x004001"
[[nodiscard]] std::string peer_text(const host::QPSnapshot& qp);  // "10.0.0.1"; "-": none

}  // namespace verbena::cli
