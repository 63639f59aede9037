#include "host/links/captured_link.h"

#include "host/os/clock.h"

namespace verbena::host {

void CapturedLink::append(const EgressFrame& frame) {
  file_.add(interface_, frame, monotonic_now());
  below_->append(frame);
}

void CapturedLink::flush() {
  below_->flush();
  file_.write();
}

bool CapturedLink::poll_frame(IngressFrame& out, Time now) {
  if (!below_->poll_frame(out, now)) return false;
  file_.add(interface_, out, pcapng::PacketDirection::kInbound, now);
  return true;
}

void CapturedLink::leave() {
  below_->leave();
  file_.write();
}

}  // namespace verbena::host
