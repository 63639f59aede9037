#include "congestion/dctcp/dctcp.h"

#include <algorithm>
#include <utility>

namespace verbena {

bool DCTCPParameters::valid() const {
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         g >= 1.0 / 1024 && g <= 1 && additive_increase >= kbps(1) && packet_bytes >= 1;
}

void DCTCP::on_ack(const AckSignal& ack, Time) {
  const bool marked = std::exchange(marked_, false);
  acknowledged_ += ack.acknowledged_bytes;
  round_marks_ += marked ? 1 : 0;
  const bool new_round = acknowledged_ > round_end_;
  if (new_round) end_round(ack.in_flight_bytes);
  bool lowered = acknowledged_ <= lowered_until_;
  if (marked && !lowered) {
    const double factor = 1 - alpha_ / 2;
    rate_ = std::max(p_.min_rate,
                     Rate::from_bps(static_cast<u64>(static_cast<double>(rate_.bps()) * factor)));
    lowered_until_ = acknowledged_ + ack.in_flight_bytes;
    lowered = true;
  }
  if (new_round && !lowered)
    rate_ = std::min(p_.line_rate, Rate::from_bps(rate_.bps() + p_.additive_increase.bps()));
}

// The first round trip has no earlier one to compare its marks with; they count in the second.
void DCTCP::end_round(u64 in_flight_bytes) {
  if (round_packets_ != 0) {
    const double share =
        std::min(1.0, static_cast<double>(round_marks_) / static_cast<double>(round_packets_));
    alpha_ = (1 - p_.g) * alpha_ + p_.g * share;
    round_marks_ = 0;
    round_packets_ = in_flight_bytes / p_.packet_bytes + 1;
  } else {
    round_packets_ = (acknowledged_ + in_flight_bytes) / p_.packet_bytes + 1;
  }
  round_end_ = acknowledged_ + in_flight_bytes;
}

}  // namespace verbena
