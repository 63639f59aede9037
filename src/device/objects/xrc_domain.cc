#include "device/objects/xrc_domain.h"

namespace verbena {

SharedReceiveQueue* XRCDomain::srq(u32 number) const {
  SharedReceiveQueue* const srq = srqs_.find(slot_of_srq_number(number));
  return srq != nullptr && srq->number() == number && srq->xrcd == this ? srq : nullptr;
}

std::optional<XRCReceiveQueue> XRCDomain::find(u32 srq_number) const {
  SharedReceiveQueue* const found = srq(srq_number);
  if (found == nullptr) return std::nullopt;
  return XRCReceiveQueue{.queue = &found->queue(), .pd = found->pd.id};
}

}  // namespace verbena
