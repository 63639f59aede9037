#include "congestion/tcp/dctcp.h"

#include <utility>

namespace verbena::tcp {

void DCTCP::on_acknowledged(const Acknowledgement& ack, Time now) {
  bytes_ += ack.bytes;
  marked_ += ack.marked_bytes;
  if (ack.up_to > window_end_) end_window(ack.sent);
  if (ack.marked_bytes != 0 && ack.may_reduce && ack.up_to > reduced_until_) {
    reduce();
    reduced_until_ = ack.sent;
    reduced_ = true;
    return;
  }
  if (ack.grows && ack.marked_bytes == 0) reno_.on_acknowledged(ack.bytes, now);
}

void DCTCP::end_window(u64 sent) {
  if (bytes_ != 0)
    alpha_ += kG * (static_cast<double>(marked_) / static_cast<double>(bytes_) - alpha_);
  bytes_ = marked_ = 0;
  window_end_ = sent;
}

void DCTCP::reduce() {
  const WindowState& before = reno_.state();
  WindowState after = before;
  after.window = after.threshold =
      before.at_least_two(static_cast<double>(before.window) * (1 - alpha_ / 2));
  reno_ = Reno(after);
}

bool DCTCP::take_reduction() { return std::exchange(reduced_, false); }

}  // namespace verbena::tcp
